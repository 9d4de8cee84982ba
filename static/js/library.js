// The pages of the library: selection, the share dialog and lists that reload themselves.

import { watch } from "./connection.js";
import { isComposing } from "./keys.js";
import { share } from "./sharing.js";

const selected = new Set();
const bulk = document.getElementById("delete-documents");

if (document.querySelector("[ws-connect]")) watch();
share();
document.addEventListener("click", pressed);
document.addEventListener("change", changed);
document.addEventListener("keydown", typed);
document.addEventListener("htmx:oobAfterSwap", swapped);
document.addEventListener("htmx:afterSwap", restore);
document.addEventListener("htmx:wsBeforeMessage", ({ detail }) => makeRoom(detail.message));
document.addEventListener("htmx:wsAfterMessage", ({ detail }) => compare(detail.message));
addEventListener("pageshow", () => document.querySelectorAll("[name=document]:checked").forEach((box) => (box.checked = false)));

function pressed({ target }) {
  const details = document.querySelector("details.library-new[open]");
  if (target.closest?.("[data-new-collection]")) openForm();
  else if (details && !details.contains(target)) details.open = false;
}

function typed(event) {
  const details = document.querySelector("details.library-new[open]");
  if (!details || event.key !== "Escape" || isComposing(event)) return;
  details.open = false;
  details.querySelector("summary").focus();
}

function openForm() {
  const details = document.querySelector("details.library-new");
  details.open = true;
  details.querySelector("input[name=name]").focus();
}

document.querySelectorAll("details.library-new").forEach((details) =>
  details.addEventListener("toggle", () => details.open && details.querySelector("input[name=name]").focus()),
);

function changed({ target }) {
  if (target.matches?.("[data-check-all]")) {
    for (const box of document.querySelectorAll("[name=document]")) choose(box, target.checked);
  } else if (target.matches?.("[name=document]")) choose(target, target.checked);
  else return;
  showCount();
}

function choose(box, isChosen) {
  box.checked = isChosen;
  box.closest(".document-row").classList.toggle("is-selected", isChosen);
  if (isChosen) selected.add(box.value);
  else selected.delete(box.value);
}

function showCount() {
  if (!bulk) return;
  const words = bulk.querySelector("[data-one]");
  bulk.toggleAttribute("data-some", selected.size > 0);
  words.textContent = selected.size === 1 ? words.dataset.one : words.dataset.many.replace("{}", selected.size);
}

// A row that was replaced while it is selected stays selected; one that is gone isn't.
function restore() {
  const boxes = [...document.querySelectorAll("[name=document]")];
  const present = new Set(boxes.map((box) => box.value));
  for (const value of selected) if (!present.has(value)) selected.delete(value);
  for (const box of boxes) choose(box, selected.has(box.value));
  showCount();
}

function swapped({ target }) {
  if (target.id === "documents-reload") reload();
  else restore();
}

const ROW = /<li id="(document-\d+)"/g;
const elsewhere = document.getElementById("documents-elsewhere");

// A document that another tab has just added, or that is on another page of the list, has no row here.
function makeRoom(message) {
  for (const [, id] of message.matchAll(ROW)) {
    if (document.getElementById(id)) continue;
    const row = document.createElement("li");
    row.id = id;
    row.className = "document-row"; // htmx keeps the old attributes for a moment
    elsewhere?.append(row);
  }
}

// A frame has all documents in progress. A row that isn't in it ended before the socket was open.
function compare(message) {
  elsewhere?.replaceChildren();
  if (!message.includes('id="collection-summary"')) return;
  const live = new Set([...message.matchAll(ROW)].map(([, id]) => id));
  const rows = document.querySelectorAll('.document-row:is([data-status="queued"], [data-status="reading"], [data-status="indexing"])');
  if ([...rows].some((row) => !live.has(row.id))) reload();
}

// Many files at once are many changes.
let soon;

export function reload() {
  clearTimeout(soon);
  soon = setTimeout(() => {
    htmx.ajax("GET", location.pathname + location.search, { target: "#documents", swap: "outerHTML" });
  }, 400);
}
