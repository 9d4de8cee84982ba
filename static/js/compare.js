import { start } from "./decisions.js";
import { isComposing } from "./keys.js";

const announcer = document.getElementById("announcer");
let heard = standing();

start();
openTarget();
addEventListener("hashchange", openTarget);
document.addEventListener("keydown", moved);
document.addEventListener("htmx:beforeSwap", keep);
document.addEventListener("htmx:afterRequest", said);

// J and K go from row to row, N and P from one difference to the next.
function moved(event) {
  const key = event.key.toLowerCase();
  const by = { j: 1, n: 1, k: -1, p: -1 }[key];
  if (!by || isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const differing = key === "n" || key === "p" ? "[data-differs]" : "";
  const rows = [...document.querySelectorAll(`.pair-row${differing}, #answers${differing}`)].filter(isShown);
  const focused = document.activeElement;
  const here = focused.closest(".pair-row, #answers") ?? focused.closest("#comparison *");
  focus(next(rows, here, by));
}

function isShown(row) {
  return row.checkVisibility();
}

function next(rows, here, by) {
  if (!here) return rows.at(by > 0 ? 0 : -1);
  const after = rows.filter((row) => here.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING);
  const before = rows.filter((row) => here.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_PRECEDING);
  return by > 0 ? after[0] : before.at(-1);
}

function focus(row) {
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "center" });
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  target?.closest("details")?.setAttribute("open", "");
  focus(target?.closest(".pair-row, #answers"));
}

// An update must not change a comment being typed or a row being read.
function keep({ target, detail }) {
  if (target.id !== "comparison") return;
  if (isWriting(target)) {
    detail.shouldSwap = false;
    return;
  }
  const open = [...target.querySelectorAll("details[open][id]")].map(({ id }) => id);
  const row = document.activeElement.closest(".pair-row, #answers")?.id;
  document.addEventListener("htmx:afterSettle", () => restore(open, row), { once: true });
}

function said({ target, detail }) {
  if (detail.xhr.status === 204) target.closest?.(".approval")?.setAttribute("data-said", "");
}

function isWriting(within) {
  const fields = [...within.querySelectorAll(".approval:not([data-said]) textarea")];
  return fields.some((field) => field === document.activeElement || field.value !== field.defaultValue);
}

// A page that refreshes every two seconds only announces changes.
function standing() {
  return document.querySelector("#comparison > .live-note")?.textContent.trim() ?? announcer.dataset.over;
}

function restore(open, row) {
  if (standing() !== heard) announcer.textContent = heard = standing();
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (row) document.getElementById(row)?.focus({ preventScroll: true });
}
