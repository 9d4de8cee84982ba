// The pages of the library: selection, the share dialog and lists that reload themselves.

import { startConnection } from "./connection.js";
import { isComposing } from "./keys.js";
import { startSharing } from "./sharing.js";

const selected = new Set();
const bulk = document.getElementById("delete-documents");
const offPageRows = document.getElementById("documents-elsewhere");
const ROW = /<li id="(document-\d+)"/g;
let reloadTimer;

if (document.querySelector("[ws-connect]")) startConnection();
startSharing();
document.addEventListener("click", onClick);
document.addEventListener("change", onChange);
document.addEventListener("keydown", onKeydown);
document.addEventListener("htmx:oobAfterSwap", onOobSwap);
document.addEventListener("htmx:afterSwap", restoreSelection);
document.addEventListener("htmx:wsBeforeMessage", ({ detail }) => addMissingRows(detail.message));
document.addEventListener("htmx:wsAfterMessage", ({ detail }) => reloadIfEnded(detail.message));
for (const details of document.querySelectorAll("details.library-new"))
  details.addEventListener("toggle", () => details.open && details.querySelector("input[name=name]").focus());
addEventListener("pageshow", () => document.querySelectorAll("[name=document]:checked").forEach((box) => (box.checked = false)));

function onClick({ target }) {
  const details = document.querySelector("details.library-new[open]");
  if (details && !details.contains(target)) details.open = false;
}

function onKeydown(event) {
  const details = document.querySelector("details.library-new[open]");
  if (!details || event.key !== "Escape" || isComposing(event)) return;
  details.open = false;
  details.querySelector("summary").focus();
}

function onChange({ target }) {
  if (target.matches?.("[data-check-all]")) {
    for (const box of document.querySelectorAll("[name=document]")) selectRow(box, target.checked);
  } else if (target.matches?.("[name=document]")) selectRow(target, target.checked);
  else return;
  showCount();
}

function selectRow(box, isChosen) {
  box.checked = isChosen;
  box.closest(".document-row").classList.toggle("is-selected", isChosen);
  if (isChosen) selected.add(box.value);
  else selected.delete(box.value);
}

function showCount() {
  if (!bulk) return;
  const label = bulk.querySelector("[data-one]");
  bulk.toggleAttribute("data-some", selected.size > 0);
  label.textContent = selected.size === 1 ? label.dataset.one : label.dataset.many.replace("{}", selected.size);
}

// A row that was replaced while it is selected stays selected; one that is gone isn't.
function restoreSelection() {
  const boxes = [...document.querySelectorAll("[name=document]")];
  const present = new Set(boxes.map((box) => box.value));
  for (const value of selected) if (!present.has(value)) selected.delete(value);
  for (const box of boxes) selectRow(box, selected.has(box.value));
  showCount();
}

function onOobSwap({ target }) {
  if (target.id === "documents-reload") reloadDocuments();
  else restoreSelection();
}

// A document that another tab has just added, or that is on another page of the list, has no row here.
function addMissingRows(message) {
  for (const [, id] of message.matchAll(ROW)) {
    if (document.getElementById(id)) continue;
    const row = document.createElement("li");
    row.id = id;
    row.className = "document-row"; // htmx keeps the old attributes for a moment
    offPageRows?.append(row);
  }
}

// A frame has all documents in progress. A row that isn't in it ended before the socket was open.
function reloadIfEnded(message) {
  offPageRows?.replaceChildren();
  if (!message.includes('id="collection-summary"')) return;
  const live = new Set([...message.matchAll(ROW)].map(([, id]) => id));
  const rows = document.querySelectorAll('.document-row:is([data-status="queued"], [data-status="reading"], [data-status="indexing"])');
  if ([...rows].some((row) => !live.has(row.id))) reloadDocuments();
}

// Many files at once are many changes.
export function reloadDocuments() {
  clearTimeout(reloadTimer);
  reloadTimer = setTimeout(() => {
    const place = { target: "#documents", swap: "outerHTML" };
    htmx.ajax("GET", location.pathname + location.search, place).catch(() => {}); // the next change loads them
  }, 400);
}
