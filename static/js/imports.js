// The list of operations of an OpenAPI document: a filter, and how many are selected.

import { isComposing } from "./keys.js";

const list = document.getElementById("operation-list");
const filter = document.getElementById("operation-filter");
const count = document.querySelector(".import-count");

function showCount() {
  const picked = list.querySelectorAll('input[name="pick"]:checked').length;
  count.textContent = picked === 1 ? count.dataset.one : count.dataset.many.replace("{count}", picked);
}

function showMatches() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const item of list.children) {
    const text = item.dataset.words.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
    found += item.hidden ? 0 : 1;
  }
  document.getElementById("operation-none").hidden = found > 0;
}

if (list) {
  filter.hidden = false;
  filter.addEventListener("input", showMatches);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !isComposing(event)) event.preventDefault(); // it would import
  });
  list.addEventListener("change", showCount);
  showCount();
  showMatches();
}
