// Files of the composer: picked, dropped, pasted or photographed. Each is uploaded at once and
// read by the server; the message is sent with those that are there, and waits for the others.

const form = document.getElementById("ask");
const list = document.getElementById("uploads");
const texts = form?.querySelector(".attach")?.dataset ?? {};
const template = document.getElementById("upload-template");
const MAX_PARALLEL = 3;
const POLL_MS = 800;

const chips = new Set();
let pollTimer = 0;
let dropArea = null;
let dragDepth = 0;

export function startUploads() {
  form.querySelector("[data-attach]").addEventListener("click", () => fileInputs()[0].click());
  form.querySelector("[data-camera]").addEventListener("click", () => fileInputs()[1].click());
  for (const input of fileInputs())
    input.addEventListener("change", () => {
      addFiles(input.files);
      input.value = "";
    });
  list.addEventListener("click", onClick);
  document.addEventListener("change", onChoiceChange);
  document.addEventListener("paste", onPaste);
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) document.addEventListener(kind, onDrag);
  document.addEventListener("submit", onSubmit, true);
}

const fileInputs = () => form.querySelectorAll("input[data-picked]");

// Word and spreadsheet programs copy a picture of the text, too.
function onPaste(event) {
  const { target, clipboardData } = event;
  const elsewhere = target.closest?.("input, textarea, [contenteditable]");
  if ((elsewhere && !form.contains(elsewhere)) || !clipboardData?.files.length) return;
  if (clipboardData.types.includes("text/plain")) return;
  event.preventDefault();
  addFiles(clipboardData.files);
}

function onDrag(event) {
  if (!event.dataTransfer?.types.includes("Files") || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  if (event.type === "dragenter") dragDepth++;
  if (event.type === "dragleave") dragDepth--;
  if (event.type === "drop") {
    dragDepth = 0;
    addFiles(event.dataTransfer.files);
  }
  if (!dropArea && dragDepth > 0) {
    dropArea = Object.assign(document.createElement("div"), { className: "drop" });
    dropArea.append(Object.assign(document.createElement("span"), { textContent: texts.drop }));
    document.body.append(dropArea);
  }
  if (dropArea) dropArea.hidden = dragDepth <= 0;
}

export function addFiles(files, { whenRead = null, whenUploaded = null } = {}) {
  for (const file of files) {
    if (chips.size >= Number(texts.most)) return showNotice(texts.tooMany);
    const chip = createChip({ name: file.name || "file", kind: kindOf(file), icon: kindOf(file), state: "waiting", note: "" });
    chip.file = file;
    chip.whenRead = whenRead;
    chip.whenUploaded = whenUploaded;
    if (file.size > Number(texts.mostMegabytes) * 1e6) showFailure(chip, texts.tooLarge, false);
  }
  uploadNext();
  updateComposer();
  document.getElementById("text").focus({ preventScroll: true });
}

function kindOf({ type }) {
  const kind = type.split("/")[0];
  return ["image", "audio", "video"].includes(kind) ? kind : "document";
}

function uploadNext() {
  const busyCount = [...chips].filter((chip) => chip.request).length;
  const waiting = [...chips].filter((chip) => chip.state === "waiting" && !chip.request);
  waiting.slice(0, Math.max(0, MAX_PARALLEL - busyCount)).forEach(upload);
}

// Who will read a file decides how it is read.
function readerBody() {
  const body = new FormData();
  for (const name of ["agent", "model"]) if (form.elements[name]?.value) body.append(name, form.elements[name].value);
  return body;
}

function upload(chip) {
  const body = readerBody();
  body.append("file", chip.file, chip.name);
  const chat = document.getElementById("main").dataset.session;
  if (chat) body.append("chat", chat);
  const request = (chip.request = new XMLHttpRequest());
  request.open("POST", texts.uploads);
  request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
  request.upload.onprogress = ({ loaded, total }) => showProgress(chip, total ? (100 * loaded) / total : 0);
  request.onload = () => endRequest(chip, () => onUploaded(chip, request));
  request.onerror = () => endRequest(chip, () => showFailure(chip, texts.offline));
  request.send(body);
  showProgress(chip, 0);
}

function showProgress(chip, percent) {
  const wholePercent = Math.min(99, Math.floor(percent));
  updateChip(chip, { state: "uploading", progress: wholePercent, note: texts.uploading.replace("{}", `${wholePercent}%`) });
}

function onUploaded(chip, request) {
  const answer = parseJson(request.responseText);
  if (request.status === 201) {
    chip.file = null;
    updateChip(chip, answer);
    announce(texts.attached, chip);
    chip.whenUploaded?.(chip);
  } else if (request.status === 422) showFailure(chip, answer?.problem ?? texts.failed, false);
  else if (request.status === 413) {
    // What the error page says.
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    showFailure(chip, page.querySelector("main h1 + p")?.textContent ?? texts.tooLarge, false);
  } else if (request.status === 403 || request.responseURL.includes("login")) showFailure(chip, texts.signedOut, false);
  else showFailure(chip, request.status === 507 ? texts.full : texts.failed);
}

function endRequest(chip, onEnd) {
  chip.request = null;
  if (!chips.has(chip)) return; // removed meanwhile
  onEnd();
  uploadNext();
  updateComposer();
  pollReading();
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function showFailure(chip, problem, canRetry = true) {
  updateChip(chip, { state: "failed", note: problem, progress: null });
  chip.row.querySelector("[data-retry]").hidden = !canRetry;
  chip.row.scrollIntoView({ block: "nearest" }); // a long list scrolls
}

function createChip(file) {
  const row = template.content.firstElementChild.cloneNode(true);
  const chip = { row };
  chips.add(chip);
  list.append(row);
  row.querySelector("b").textContent = row.title = file.name;
  updateChip(chip, file);
  return chip;
}

// Shows what is known of a file by now.
export function updateChip(chip, changes) {
  Object.assign(chip, changes);
  if (chip.whenRead && ["ready", "failed"].includes(chip.state)) {
    const read = chip.whenRead;
    chip.whenRead = null;
    read(chip);
  }
  const { row, state, note, size, progress, thumbnail, icon } = chip;
  row.dataset.state = state;
  row.dataset.kind = chip.kind;
  row.querySelector("small").textContent = [size, note].filter(Boolean).join(" · ");
  const bar = row.querySelector("progress");
  bar.hidden = progress === null || progress === undefined || state === "ready" || state === "failed";
  if (!bar.hidden) bar.value = progress;
  row.querySelector("use").setAttribute("href", `#i-${icon}`);
  if (thumbnail && !row.querySelector("img")) {
    const image = Object.assign(new Image(), { src: thumbnail, alt: "" });
    row.querySelector(".upload-picture").replaceChildren(image);
  }
  showReading(chip);
  if (state === "failed" && chip.id) row.querySelector("[data-retry]").hidden = false;
  else if (state !== "failed") row.querySelector("[data-retry]").hidden = true;
}

// How a model gets the text: whole, or searched. The size is the reason, in the list itself.
function showReading({ row, state, sentAs, reason, id }) {
  const label = row.querySelector(".file-choice");
  const choice = label.querySelector("select");
  label.hidden = state !== "ready" || !sentAs;
  if (label.hidden) return;
  choice.value = choice.dataset.now = sentAs;
  choice.dataset.url = `${texts.uploads}${id}/reading/`;
  choice.title = choice.firstElementChild.label = reason;
}

async function onChoiceChange({ target }) {
  const choice = target.closest?.("select[data-sent-as]");
  if (!choice) return;
  const body = readerBody();
  body.append("sent_as", choice.value);
  choice.disabled = true;
  const response = await postUpload(choice.dataset.url, body);
  choice.disabled = false;
  const result = response && (await response.json().catch(() => null));
  if (response?.ok) {
    choice.dataset.now = choice.value;
    choice.title = choice.firstElementChild.label = result.reason;
    showNotice("");
  } else {
    choice.value = choice.dataset.now;
    showNotice(result?.problem ?? (response ? texts.choiceFailed : texts.choiceOffline));
  }
  choice.focus();
}

function onClick({ target }) {
  const button = target.closest("button");
  const chip = [...chips].find(({ row }) => row === button?.closest(".upload"));
  if (!chip) return;
  if ("remove" in button.dataset) removeChip(chip);
  else retryChip(chip);
}

export function removeChip(chip) {
  if (!chips.has(chip)) return;
  const neighbour = chip.row.nextElementSibling ?? chip.row.previousElementSibling;
  chip.request?.abort();
  if (chip.id) postUpload(`${texts.uploads}${chip.id}/delete/`);
  discardChip(chip);
  announce(texts.removed, chip);
  (neighbour?.querySelector("[data-remove]") ?? document.getElementById("text")).focus();
  uploadNext();
  updateComposer();
}

function discardChip(chip) {
  chips.delete(chip);
  chip.row.remove();
}

async function retryChip(chip) {
  if (!chip.id) {
    updateChip(chip, { state: "waiting", note: "" });
    return uploadNext();
  }
  updateChip(chip, { state: "reading", note: "" });
  const response = await postUpload(`${texts.uploads}${chip.id}/retry/`);
  if (response?.ok) updateChip(chip, await response.json());
  pollReading();
}

function postUpload(url, body) {
  const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  return fetch(url, { method: "POST", headers, body }).catch(() => null);
}

// Asks how far the server is with reading, as long as it reads; then sends a message that waited.
function pollReading() {
  clearTimeout(pollTimer);
  const reading = [...chips].filter((chip) => chip.state === "reading");
  if (reading.length) pollTimer = setTimeout(updateReading, POLL_MS);
  else if (form.dataset.holding !== undefined && !isBusy()) {
    delete form.dataset.holding;
    showNotice("");
    if (form.elements.text.value.trim() || form.elements.files.value) form.requestSubmit();
  }
}

async function updateReading() {
  const files = await fetchStatus([...chips].map((chip) => chip.id).filter(Boolean));
  for (const file of files ?? []) {
    const chip = [...chips].find(({ id }) => id === file.id);
    if (chip) updateChip(chip, file);
  }
  pollReading();
}

async function fetchStatus(ids) {
  try {
    const response = await fetch(`${texts.uploads}?ids=${ids.join(",")}`, { headers: { Accept: "application/json" } });
    return response.ok ? (await response.json()).files : null;
  } catch {
    return null;
  }
}

const isBusy = () => [...chips].some(({ state }) => ["waiting", "uploading", "reading"].includes(state));

// The message waits for its files, visibly, and is sent when they are read.
function onSubmit(event) {
  if (event.target !== form || form.dataset.sending === "again" || !isBusy()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  form.dataset.holding = "";
  showNotice(texts.waiting);
}

function showNotice(message) {
  const element = document.getElementById("notice");
  element.textContent = message;
  element.dataset.level = message === texts.waiting ? "" : "problem";
}

function announce(sentence, chip) {
  document.getElementById("announcer").textContent = sentence.replace("{}", chip.name);
}

// Tells the composer, which saves drafts; only what the server has can be sent.
function updateComposer(isEdit = true) {
  const ids = [...chips].map(({ id }) => id).filter(Boolean);
  form.elements.files.value = ids.join(",");
  list.hidden = !chips.size;
  form.toggleAttribute("data-files", Boolean(ids.length || isBusy()));
  form.elements.text.required = !chips.size;
  if (!chips.size) delete form.dataset.holding;
  if (isEdit) form.dispatchEvent(new Event("files"));
}

// The message was sent with them.
export function clearUploads() {
  if (!chips.size && !form.elements.files.value) return;
  for (const chip of [...chips]) discardChip(chip);
  updateComposer(false);
}

// Shows files again that were uploaded before a reload, or came back from the queue.
export async function restoreUploads(ids) {
  if (!ids?.length) return;
  form.elements.files.value = ids.join(",");
  const shownIds = new Set([...chips].map(({ id }) => id));
  const files = await fetchStatus(ids);
  if (files === null) return;
  for (const file of files) if (!shownIds.has(file.id)) createChip(file);
  updateComposer(false); // the draft stays the same message
  pollReading();
}
