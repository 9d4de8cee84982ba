// Uploads files one by one with progress: chosen, dropped, pasted, or a whole folder.

import { reloadDocuments } from "./library.js";

const MAX_AT_ONCE = 2;
const MAX_FILES = 2000;
const zone = document.getElementById("upload");
const list = document.getElementById("uploads");
const waiting = [];
let runningCount = 0;
let totalCount = 0;
let doneCount = 0;

if (zone) {
  zone.addEventListener("change", onPick);
  addEventListener("dragover", onDragover);
  addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? zone.removeAttribute("data-over"));
  addEventListener("drop", onDrop);
  addEventListener("paste", onPaste);
  addEventListener("beforeunload", (event) => (runningCount || waiting.length) && event.preventDefault());
}

function onPick({ target }) {
  addFiles([...target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
  target.value = "";
}

function onDragover(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "copy";
  zone.dataset.over = "";
}

async function onDrop(event) {
  zone.removeAttribute("data-over");
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  // Entries are only available until the event ends.
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [...event.dataTransfer.files].map((file) => ({ file, path: file.name }));
  if (!entries.some((entry) => entry.isDirectory)) return addFiles(files);
  const collected = [];
  for (const entry of entries) await collectFiles(entry, collected);
  addFiles(collected);
}

async function collectFiles(entry, files) {
  if (files.length >= MAX_FILES || entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject)).catch(() => null);
    if (file) files.push({ file, path: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)).catch(() => []);
    if (!batch.length) return;
    for (const child of batch) await collectFiles(child, files);
  }
}

function onPaste(event) {
  if (event.target.closest?.("input, textarea")) return;
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  addFiles(files.map((file) => ({ file, path: file.name })));
}

function addFiles(files) {
  const visibleFiles = files.slice(0, MAX_FILES).filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));
  if (!visibleFiles.length) return;
  list.hidden = false;
  for (const { file, path } of visibleFiles) waiting.push({ file, path, upload: createRow(path) });
  totalCount += visibleFiles.length;
  sendNext();
}

function createRow(path) {
  const row = document.createElement("li");
  const name = document.createElement("span");
  name.className = "upload-name";
  name.textContent = path;
  name.title = path;
  const bar = document.createElement("progress");
  bar.max = 100;
  bar.value = 0;
  bar.setAttribute("aria-label", path);
  const stop = document.createElement("button");
  stop.type = "button";
  stop.className = "quiet";
  stop.textContent = zone.dataset.cancel;
  row.append(name, bar, stop);
  list.append(row);
  const upload = { row, bar, stop };
  stop.addEventListener("click", () => upload.act());
  upload.act = () => {
    const index = waiting.findIndex((item) => item.upload === upload);
    if (index >= 0) waiting.splice(index, 1);
    totalCount -= 1;
    removeRow(upload);
  };
  return upload;
}

function sendNext() {
  showTotal();
  while (runningCount < MAX_AT_ONCE && waiting.length) sendFile(waiting.shift());
}

function sendFile(item) {
  const { file, path, upload } = item;
  const request = new XMLHttpRequest();
  const body = new FormData();
  body.append("path", path);
  body.append("file", file);
  runningCount += 1;
  upload.act = () => request.abort();
  request.upload.addEventListener("progress", ({ loaded, total: size, lengthComputable }) => {
    if (lengthComputable) upload.bar.value = Math.round((100 * loaded) / size);
    if (loaded === size) upload.bar.removeAttribute("value"); // the server is saving it
  });
  request.addEventListener("load", () => onResponse(request, item));
  request.addEventListener("error", () => showFailure(item, zone.dataset.failed));
  request.addEventListener("timeout", () => showFailure(item, zone.dataset.failed));
  request.addEventListener("abort", () => {
    totalCount -= 1;
    removeRow(upload);
  });
  request.addEventListener("loadend", () => {
    runningCount -= 1;
    if (doneCount && !runningCount && !waiting.length) reloadDocuments();
    sendNext();
  });
  request.open("POST", zone.action);
  request.timeout = 600_000;
  request.setRequestHeader("X-CSRFToken", zone.elements.csrfmiddlewaretoken.value);
  request.setRequestHeader("X-Upload", "1");
  request.send(body);
}

function onResponse(request, item) {
  if (request.responseURL.includes("/login/")) return location.reload(); // signed out meanwhile
  if (request.status === 422) return showFailure(item, request.responseText);
  if (request.status !== 200) return showFailure(item, request.status === 413 ? zone.dataset.refused : zone.dataset.failed);
  doneCount += 1;
  removeRow(item.upload);
  // The new row comes first. When all are there, the list is loaded again in its own order.
  const rows = document.getElementById("document-rows");
  const template = document.createElement("template");
  template.innerHTML = request.responseText;
  for (const row of [...template.content.querySelectorAll("li")]) {
    document.getElementById(row.id)?.remove();
    rows.prepend(row);
    htmx.process(row);
  }
  document.querySelector("#documents .empty")?.remove();
}

function showFailure(item, sentence) {
  const { row, bar, stop } = item.upload;
  bar.hidden = true;
  const problem = document.createElement("p");
  problem.className = "problem";
  problem.textContent = sentence;
  row.append(problem);
  totalCount -= 1;
  const retryButton = document.createElement("button");
  retryButton.type = "button";
  retryButton.className = "quiet";
  retryButton.textContent = zone.dataset.again;
  stop.textContent = zone.dataset.dismiss;
  item.upload.act = () => removeRow(item.upload);
  stop.before(retryButton);
  retryButton.addEventListener("click", () => {
    removeRow(item.upload);
    addFiles([item]);
  });
}

function removeRow({ row }) {
  row.remove();
  if (!list.querySelector("li:not(.upload-total)")) list.hidden = true;
  showTotal();
}

// A long list starts with how much is done.
function showTotal() {
  if (!runningCount && !waiting.length) totalCount = doneCount = 0;
  let row = list.querySelector(".upload-total");
  if (totalCount <= 3) return row?.remove();
  if (!row) {
    row = document.createElement("li");
    row.className = "upload-total";
    list.prepend(row);
  }
  row.textContent = zone.dataset.done.replace("{}", doneCount).replace("{}", totalCount);
}
