// The providers of a new model: typing filters the cards, Enter opens the first one.

import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

const search = document.getElementById("provider-search");
const noneNote = document.getElementById("no-provider");
const cards = [...document.querySelectorAll(".provider-gallery li")];

search?.addEventListener("input", filterCards);
search?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || isComposing(event)) return;
  event.preventDefault();
  visibleCards()[0]?.querySelector("a").click();
});
addEventListener("pageshow", filterCards);

function filterCards() {
  const words = searchWords(search.value);
  for (const card of cards) {
    card.hidden = !hasAllWords(card.dataset.search, words);
  }
  for (const section of document.querySelectorAll(".provider-gallery section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  noneNote.hidden = visibleCards().length > 0;
}

function visibleCards() {
  return cards.filter((card) => !card.hidden);
}
