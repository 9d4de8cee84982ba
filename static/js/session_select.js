// Several chats at once: check them, then pin, move, archive or delete them.

import { isComposing } from "./keys.js";
import { list } from "./session_requests.js";

const bar = document.getElementById("select-bar");
const area = document.getElementById("session-list");
const count = document.getElementById("select-count");
const chosen = new Set();
let last; // the row that was checked last, where a range starts

export function selectSessions(done) {
  bar.addEventListener("click", ({ target }) => {
    if (target.closest("[data-select-all]")) toggleAll();
    else if (target.closest("[data-select-end]")) endSelecting();
    else if (target.closest("[data-selected]")) chosen.size && done(target.closest("[data-selected]").dataset.selected, [...chosen]);
  });
  area.addEventListener("click", clicked);
  document.addEventListener("keydown", escaped);
  document.addEventListener("htmx:load", ({ target }) => target.closest?.("#session-list") && mark());
}

export function startSelecting(row) {
  area.toggleAttribute("data-selecting", true);
  bar.hidden = false;
  if (row) choose(row, true);
  mark();
  (row ?? rows()[0])?.querySelector(".session-check").focus();
}

export function endSelecting() {
  const was = isSelecting();
  chosen.clear();
  last = undefined;
  area.toggleAttribute("data-selecting", false);
  bar.hidden = true;
  mark();
  if (was) document.querySelector("[data-list-menu]").focus();
}

export const isSelecting = () => area.hasAttribute("data-selecting");
export const selected = () => [...chosen];

const rows = () => [...list().querySelectorAll(".session")].filter((row) => row.checkVisibility());

// A row is checked wherever it is clicked, with Shift all rows since the last one.
function clicked(event) {
  const row = event.target.closest(".session");
  if (!isSelecting() || !row || event.target.closest("[data-menu]")) return;
  const isBox = event.target.matches(".session-check");
  if (!isBox) event.preventDefault();
  const on = !chosen.has(row.dataset.pk);
  if (event.shiftKey && last) range(row, on);
  else choose(row, on);
  last = row.dataset.pk;
  if (isBox) row.querySelector(".session-check").checked = on;
  mark();
}

function range(row, on) {
  const all = rows();
  const ends = [all.findIndex(({ dataset }) => dataset.pk === last), all.indexOf(row)].sort((a, b) => a - b);
  for (const each of all.slice(Math.max(0, ends[0]), ends[1] + 1)) choose(each, on);
}

function choose({ dataset }, on) {
  if (on) chosen.add(dataset.pk);
  else chosen.delete(dataset.pk);
}

function toggleAll() {
  const all = rows();
  const on = !all.every(({ dataset }) => chosen.has(dataset.pk));
  for (const row of all) choose(row, on);
  mark();
}

function mark() {
  for (const row of list().querySelectorAll(".session")) {
    const on = chosen.has(row.dataset.pk);
    row.querySelector(".session-check").checked = on;
    row.toggleAttribute("data-chosen", on);
  }
  const { one, many, none } = count.dataset;
  count.textContent = { 0: none, 1: one }[chosen.size] ?? many.replace("{}", chosen.size);
  for (const button of bar.querySelectorAll("[data-selected]")) button.disabled = !chosen.size;
  const archived = list().hasAttribute("data-archive");
  bar.querySelector("[data-selected=archive]").hidden = archived;
  bar.querySelector("[data-selected=unarchive]").hidden = !archived;
}

function escaped(event) {
  if (event.key !== "Escape" || !isSelecting() || isComposing(event)) return;
  if (document.querySelector("dialog[open], .row-menu:popover-open")) return;
  if (event.target.closest("#composer")) return;
  endSelecting();
}
