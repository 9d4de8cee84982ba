// Finds steps of a long run by their text. The others are hidden meanwhile.

import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

let loadAll;
let goToNext;

// `all` loads the remaining rows and then calls its argument; `move` goes to the next match.
export function startStepSearch({ all, move }) {
  loadAll = all;
  goToNext = move;
  document.addEventListener("input", ({ target }) => target.id === "find-step" && loadAll(applySearch));
  document.addEventListener("keydown", onKeydown);
  document.addEventListener("htmx:oobAfterSwap", applySearch);
}

// A step that a link leads to is visible, whatever is being searched.
export function clearStepSearch() {
  const field = document.getElementById("find-step");
  if (!field?.value) return;
  field.value = "";
  applySearch();
}

function onKeydown(event) {
  const field = event.target;
  if (field.id !== "find-step" || isComposing(event)) return;
  if (event.key === "Enter") loadAll(() => { applySearch(); goToNext(); });
  else if (event.key === "Escape" && field.value) clearStepSearch();
  else if (event.key === "Escape") field.blur();
  else return;
  event.preventDefault();
}

function applySearch() {
  const field = document.getElementById("find-step");
  if (!field) return;
  const words = searchWords(field.value);
  const rows = [...document.querySelectorAll(".step")];
  for (const row of rows) row.hidden = !hasAllWords(row.textContent, words);
  const count = rows.filter((row) => !row.hidden).length;
  const status = field.closest(".find-steps").querySelector(".find-count");
  status.textContent = words.length ? status.dataset.text.replace("{}", count).replace("{}", rows.length) : "";
}
