// Several chats at once: check them, then pin, move, archive or delete them.

import { isComposing } from "./keys.js";
import { sessionList } from "./session_requests.js";

const bar = document.getElementById("select-bar");
const area = document.getElementById("session-list");
const count = document.getElementById("select-count");
const chosen = new Set();
let lastChosen; // the row that was checked last, where a range starts

export function startSessionSelection(onAction) {
  bar.addEventListener("click", ({ target }) => {
    if (target.closest("[data-select-all]")) chooseAllOrNone();
    else if (target.closest("[data-select-end]")) endSelecting();
    const button = target.closest("[data-selected]");
    if (button && chosen.size) onAction(button.dataset.selected, [...chosen]);
  });
  area.addEventListener("click", onClick);
  document.addEventListener("keydown", onKeydown);
  document.addEventListener("htmx:load", ({ target }) => target.closest?.("#session-list") && updateRows());
}

export function startSelecting(row) {
  area.toggleAttribute("data-selecting", true);
  bar.hidden = false;
  if (row) setChosen(row, true);
  updateRows();
  (row ?? visibleRows()[0])?.querySelector(".session-check").focus();
}

export function endSelecting() {
  const wasSelecting = isSelecting();
  chosen.clear();
  lastChosen = undefined;
  area.toggleAttribute("data-selecting", false);
  bar.hidden = true;
  updateRows();
  if (wasSelecting) document.querySelector("[data-list-menu]").focus();
}

const isSelecting = () => area.hasAttribute("data-selecting");
export const chosenIds = () => [...chosen];

const visibleRows = () => [...sessionList().querySelectorAll(".session")].filter((row) => row.checkVisibility());

// A row is checked wherever it is clicked, with Shift all rows since the last one.
function onClick(event) {
  const row = event.target.closest(".session");
  if (!isSelecting() || !row || event.target.closest("[data-menu]")) return;
  const isBox = event.target.matches(".session-check");
  if (!isBox) event.preventDefault();
  const isOn = !chosen.has(row.dataset.pk);
  if (event.shiftKey && lastChosen) {
    const allRows = visibleRows();
    const bounds = [allRows.findIndex(({ dataset }) => dataset.pk === lastChosen), allRows.indexOf(row)].sort((a, b) => a - b);
    for (const sibling of allRows.slice(Math.max(0, bounds[0]), bounds[1] + 1)) setChosen(sibling, isOn);
  } else setChosen(row, isOn);
  lastChosen = row.dataset.pk;
  if (isBox) row.querySelector(".session-check").checked = isOn;
  updateRows();
}

function setChosen({ dataset }, isOn) {
  if (isOn) chosen.add(dataset.pk);
  else chosen.delete(dataset.pk);
}

function chooseAllOrNone() {
  const allRows = visibleRows();
  const isOn = !allRows.every(({ dataset }) => chosen.has(dataset.pk));
  for (const row of allRows) setChosen(row, isOn);
  updateRows();
}

function updateRows() {
  for (const row of sessionList().querySelectorAll(".session")) {
    const isChosen = chosen.has(row.dataset.pk);
    row.querySelector(".session-check").checked = isChosen;
    row.toggleAttribute("data-chosen", isChosen);
  }
  const { one, many, none } = count.dataset;
  count.textContent = { 0: none, 1: one }[chosen.size] ?? many.replace("{}", chosen.size);
  for (const button of bar.querySelectorAll("[data-selected]")) button.disabled = !chosen.size;
  const isArchive = sessionList().hasAttribute("data-archive");
  bar.querySelector("[data-selected=archive]").hidden = isArchive;
  bar.querySelector("[data-selected=unarchive]").hidden = !isArchive;
}

function onKeydown(event) {
  if (event.key !== "Escape" || !isSelecting() || isComposing(event)) return;
  if (document.querySelector("dialog[open], .row-menu:popover-open")) return;
  if (event.target.closest("#composer")) return;
  endSelecting();
}
