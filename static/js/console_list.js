// Lists of the console: selected rows show the bulk actions, and on narrow screens each cell has
// the label of its column.

import { isComposing } from "./keys.js";

const table = document.getElementById("result_list");
const bar = document.querySelector(".actions[data-bulk]");

if (table?.tBodies) label();
if (bar) {
  document.addEventListener("change", showActions);
  addEventListener("pageshow", showActions);
}
document.addEventListener("click", closeFilters);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !isComposing(event)) closeFilters({ target: document.body });
});

function label() {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, at) => {
      if (cell.tagName === "TD" && heads[at] && !cell.classList.contains("action-checkbox")) cell.dataset.label = heads[at];
    });
  }
  table.dataset.labelled = "";
}

function showActions() {
  bar.classList.toggle("has-selection", Boolean(table?.querySelector(".action-select:checked")));
}

function closeFilters({ target }) {
  for (const open of document.querySelectorAll(".list-filter[open]")) {
    if (!open.contains(target)) open.open = false;
  }
}
