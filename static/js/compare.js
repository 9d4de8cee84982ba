// Two runs side by side: keys go from row to row, and an update disturbs nobody who reads or writes.

import { startDecisions } from "./decisions.js";
import { hasModifier, isComposing } from "./keys.js";

const announcer = document.getElementById("announcer");
let announcedStatus = statusText();

startDecisions();
openTarget();
addEventListener("hashchange", openTarget);
document.addEventListener("keydown", onKeydown);
document.addEventListener("htmx:beforeSwap", onBeforeSwap);
document.addEventListener("htmx:afterRequest", onAfterRequest);

// J and K go from row to row, N and P from one difference to the next.
function onKeydown(event) {
  const key = event.key.toLowerCase();
  const step = { j: 1, n: 1, k: -1, p: -1 }[key];
  if (!step || isComposing(event) || hasModifier(event)) return;
  if (event.target.closest("input, textarea, select")) return;
  const differing = key === "n" || key === "p" ? "[data-differs]" : "";
  const rows = [...document.querySelectorAll(`.pair-row${differing}, #answers${differing}`)].filter((row) => row.checkVisibility());
  const focused = document.activeElement;
  const current = focused.closest(".pair-row, #answers") ?? focused.closest("#comparison *");
  if (!current) return focusRow(rows.at(step > 0 ? 0 : -1));
  const direction = step > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  focusRow(rows.filter((row) => current.compareDocumentPosition(row) & direction).at(step > 0 ? 0 : -1));
}

function focusRow(row) {
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "center" });
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  target?.closest("details")?.setAttribute("open", "");
  focusRow(target?.closest(".pair-row, #answers"));
}

// An update must not change a comment being typed or a row being read.
function onBeforeSwap({ target, detail }) {
  if (target.id !== "comparison") return;
  const fields = [...target.querySelectorAll(".approval:not([data-said]) textarea")];
  if (fields.some((field) => field === document.activeElement || field.value !== field.defaultValue)) {
    detail.shouldSwap = false;
    return;
  }
  const openIds = [...target.querySelectorAll("details[open][id]")].map(({ id }) => id);
  const rowId = document.activeElement.closest(".pair-row, #answers")?.id;
  const restore = () => {
    if (statusText() !== announcedStatus) announcer.textContent = announcedStatus = statusText();
    for (const id of openIds) document.getElementById(id)?.setAttribute("open", "");
    if (rowId) document.getElementById(rowId)?.focus({ preventScroll: true });
  };
  document.addEventListener("htmx:afterSettle", restore, { once: true });
}

function onAfterRequest({ target, detail }) {
  if (detail.xhr.status === 204) target.closest?.(".approval")?.setAttribute("data-said", "");
}

// A page that refreshes every two seconds only announces changes.
function statusText() {
  return document.querySelector("#comparison > .live-note")?.textContent.trim() ?? announcer.dataset.over;
}
