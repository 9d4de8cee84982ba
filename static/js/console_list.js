// Lists of the console: selected rows show the bulk actions, and on narrow screens each cell has
// the label of its column, and cells without a value are left out.

import { isComposing } from "./keys.js";

const table = document.getElementById("result_list");
const bar = document.querySelector(".actions[data-bulk]");

if (table?.tBodies) {
  const headings = [...table.querySelectorAll("thead th")].map((heading) => heading.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, index) => {
      if (cell.tagName === "TD" && headings[index] && !cell.classList.contains("action-checkbox")) cell.dataset.label = headings[index];
      if (cell.textContent.trim() === "—") cell.dataset.empty = "";
    });
  }
  table.dataset.labelled = "";
}
if (bar) {
  document.addEventListener("change", showActions);
  addEventListener("pageshow", showActions);
}
document.addEventListener("click", closeFilters);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !isComposing(event)) closeFilters({ target: document.body });
});

function showActions() {
  bar.classList.toggle("has-selection", Boolean(table?.querySelector(".action-select:checked")));
}

function closeFilters({ target }) {
  for (const filter of document.querySelectorAll(".list-filter[open]")) {
    if (filter.contains(target)) continue;
    if (filter.contains(document.activeElement)) filter.querySelector("summary").focus();
    filter.open = false;
  }
}
