// The list of operations of an OpenAPI document: a filter, and how many are selected.

import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

const list = document.getElementById("operation-list");
const filter = document.getElementById("operation-filter");
const count = document.querySelector(".import-count");

function showCount() {
  const pickedCount = list.querySelectorAll('input[name="pick"]:checked').length;
  count.textContent = pickedCount === 1 ? count.dataset.one : count.dataset.many.replace("{count}", pickedCount);
}

function showMatches() {
  const words = searchWords(filter.value);
  let matchCount = 0;
  for (const item of list.children) {
    item.hidden = !hasAllWords(item.dataset.words, words);
    matchCount += item.hidden ? 0 : 1;
  }
  document.getElementById("operation-none").hidden = matchCount > 0;
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
