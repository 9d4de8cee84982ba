// The providers of a new model: typing filters the cards, Enter opens the first one.

import { isComposing } from "./keys.js";

const search = document.getElementById("provider-search");
const none = document.getElementById("no-provider");
const cards = [...document.querySelectorAll(".provider-gallery li")];

search?.addEventListener("input", filter);
search?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || isComposing(event)) return;
  event.preventDefault();
  visible()[0]?.querySelector("a").click();
});
addEventListener("pageshow", filter);

function filter() {
  const words = fold(search.value).split(/\s+/).filter(Boolean);
  for (const card of cards) {
    const text = fold(card.dataset.search);
    card.hidden = !words.every((word) => text.includes(word));
  }
  for (const section of document.querySelectorAll(".provider-gallery section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  none.hidden = visible().length > 0;
}

function visible() {
  return cards.filter((card) => !card.hidden);
}

function fold(text) {
  return text.normalize("NFKC").toLowerCase();
}
