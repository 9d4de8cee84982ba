// Finds steps of a long run by their text. The others are hidden meanwhile.

import { isComposing } from "./keys.js";

let loadAll;
let next;

// `all` loads the remaining rows and then calls its argument; `move` goes to the next match.
export function findSteps({ all, move }) {
  [loadAll, next] = [all, move];
  document.addEventListener("input", ({ target }) => target.id === "find-step" && loadAll(apply));
  document.addEventListener("keydown", pressed);
  document.addEventListener("htmx:oobAfterSwap", apply);
}

// A step that a link leads to is visible, whatever is being searched.
export function stopFinding() {
  const field = document.getElementById("find-step");
  if (!field?.value) return;
  field.value = "";
  apply();
}

function pressed(event) {
  const field = event.target;
  if (field.id !== "find-step" || isComposing(event)) return;
  if (event.key === "Enter") loadAll(() => { apply(); next(); });
  else if (event.key === "Escape" && field.value) stopFinding();
  else if (event.key === "Escape") field.blur();
  else return;
  event.preventDefault();
}

function apply() {
  const field = document.getElementById("find-step");
  if (!field) return;
  const words = plain(field.value).split(/\s+/).filter(Boolean);
  const rows = [...document.querySelectorAll(".step")];
  for (const row of rows) row.hidden = !words.every((word) => plain(row.textContent).includes(word));
  const count = rows.filter((row) => !row.hidden).length;
  const status = field.closest(".find-steps").querySelector(".find-count");
  status.textContent = words.length ? status.dataset.text.replace("{}", count).replace("{}", rows.length) : "";
}

// Full-width letters match half-width ones.
function plain(text) {
  return text.normalize("NFKC").toLowerCase();
}
