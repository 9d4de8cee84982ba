// Uploads files one by one with progress: chosen, dropped, pasted, or a whole folder.

import { reload } from "./library.js";

const MAX_AT_ONCE = 2;
const MAX_FILES = 2000;
const zone = document.getElementById("upload");
const list = document.getElementById("uploads");
const waiting = [];
let running = 0;
let total = 0;
let done = 0;

if (zone) {
  zone.addEventListener("change", picked);
  addEventListener("dragover", over);
  addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? zone.removeAttribute("data-over"));
  addEventListener("drop", dropped);
  addEventListener("paste", pasted);
  addEventListener("beforeunload", (event) => (running || waiting.length) && event.preventDefault());
}

function picked({ target }) {
  add([...target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
  target.value = "";
}

function over(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "copy";
  zone.dataset.over = "";
}

async function dropped(event) {
  zone.removeAttribute("data-over");
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  // Entries are only available until the event ends.
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [...event.dataTransfer.files].map((file) => ({ file, path: file.name }));
  if (!entries.some((entry) => entry.isDirectory)) return add(files);
  const found = [];
  for (const entry of entries) await walk(entry, found);
  add(found);
}

async function walk(entry, found) {
  if (found.length >= MAX_FILES || entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject)).catch(() => null);
    if (file) found.push({ file, path: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)).catch(() => []);
    if (!batch.length) return;
    for (const each of batch) await walk(each, found);
  }
}

function pasted(event) {
  if (event.target.closest?.("input, textarea")) return;
  const files = [...(event.clipboardData?.files ?? [])];
  if (!files.length) return;
  event.preventDefault();
  add(files.map((file) => ({ file, path: file.name })));
}

function add(found) {
  const wanted = found.slice(0, MAX_FILES).filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));
  if (!wanted.length) return;
  list.hidden = false;
  for (const each of wanted) waiting.push({ ...each, ...line(each) });
  total += wanted.length;
  next();
}

// A long list starts with how much is done.
function line({ path }) {
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
  upload.act = () => withdraw(upload);
  return { upload };
}

function withdraw(upload) {
  const at = waiting.findIndex((each) => each.upload === upload);
  if (at >= 0) waiting.splice(at, 1);
  total -= 1;
  remove(upload);
}

function next() {
  showTotal();
  while (running < MAX_AT_ONCE && waiting.length) send(waiting.shift());
}

function send({ file, path, upload }) {
  const request = new XMLHttpRequest();
  const body = new FormData();
  body.append("path", path);
  body.append("file", file);
  running += 1;
  upload.act = () => request.abort();
  request.upload.addEventListener("progress", ({ loaded, total: size, lengthComputable }) => {
    if (lengthComputable) upload.bar.value = Math.round((100 * loaded) / size);
    if (loaded === size) upload.bar.removeAttribute("value"); // the server is saving it
  });
  request.addEventListener("load", () => answered(request, { file, path, upload }));
  request.addEventListener("error", () => failed({ file, path, upload }, zone.dataset.failed));
  request.addEventListener("timeout", () => failed({ file, path, upload }, zone.dataset.failed));
  request.addEventListener("abort", () => {
    total -= 1;
    remove(upload);
  });
  request.addEventListener("loadend", () => {
    running -= 1;
    if (done && !running && !waiting.length) reload();
    next();
  });
  request.open("POST", zone.action);
  request.timeout = 600_000;
  request.setRequestHeader("X-CSRFToken", zone.elements.csrfmiddlewaretoken.value);
  request.setRequestHeader("X-Upload", "1");
  request.send(body);
}

function answered(request, about) {
  if (request.responseURL.includes("/login/")) return location.reload(); // signed out meanwhile
  if (request.status === 422) return failed(about, request.responseText);
  if (request.status !== 200) return failed(about, request.status === 413 ? zone.dataset.refused : zone.dataset.failed);
  done += 1;
  remove(about.upload);
  show(request.responseText);
}

// The new row comes first. When all are there, the list is loaded again in its own order.
function show(html) {
  const rows = document.getElementById("document-rows");
  const holder = document.createElement("template");
  holder.innerHTML = html;
  for (const row of [...holder.content.querySelectorAll("li")]) {
    document.getElementById(row.id)?.remove();
    rows.prepend(row);
    htmx.process(row);
  }
  document.querySelector("#documents .empty")?.remove();
}

function failed(about, sentence) {
  const { row, bar, stop } = about.upload;
  bar.hidden = true;
  const problem = document.createElement("p");
  problem.className = "problem";
  problem.textContent = sentence;
  row.append(problem);
  total -= 1;
  const again = document.createElement("button");
  again.type = "button";
  again.className = "quiet";
  again.textContent = zone.dataset.again;
  stop.textContent = zone.dataset.dismiss;
  about.upload.act = () => remove(about.upload);
  stop.before(again);
  again.addEventListener("click", () => {
    remove(about.upload);
    add([about]);
  });
}

function remove({ row }) {
  row.remove();
  if (!list.querySelector("li:not(.upload-total)")) list.hidden = true;
  showTotal();
}

function showTotal() {
  if (!running && !waiting.length) total = done = 0;
  const isLong = total > 3;
  let row = list.querySelector(".upload-total");
  if (!isLong) return row?.remove();
  if (!row) {
    row = document.createElement("li");
    row.className = "upload-total";
    list.prepend(row);
  }
  row.textContent = zone.dataset.done.replace("{}", done).replace("{}", total);
}
