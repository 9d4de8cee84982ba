// Files of the composer: picked, dropped, pasted or photographed. Each is uploaded at once and
// read by the server; the message is sent with those that are there, and waits for the others.

const form = document.getElementById("ask");
const list = document.getElementById("uploads");
const told = form?.querySelector(".attach")?.dataset ?? {};
const template = document.getElementById("upload-template");
const PARALLEL = 3;
const POLL = 800;

const chips = new Set();
let polling = 0;
let drop = null;
let dragged = 0;

export function attachFiles() {
  form.querySelector("[data-attach]").addEventListener("click", () => inputs()[0].click());
  form.querySelector("[data-camera]").addEventListener("click", () => inputs()[1].click());
  for (const input of inputs()) input.addEventListener("change", () => picked(input));
  list.addEventListener("click", pressed);
  document.addEventListener("change", chosen);
  document.addEventListener("paste", pasted);
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) document.addEventListener(kind, dragging);
  document.addEventListener("submit", hold, true);
}

const inputs = () => form.querySelectorAll("input[data-picked]");

function picked(input) {
  add(input.files);
  input.value = "";
}

// Word and spreadsheet programs copy a picture of the text, too.
function pasted(event) {
  const { target, clipboardData } = event;
  const elsewhere = target.closest?.("input, textarea, [contenteditable]");
  if ((elsewhere && !form.contains(elsewhere)) || !clipboardData?.files.length) return;
  if (clipboardData.types.includes("text/plain")) return;
  event.preventDefault();
  add(clipboardData.files);
}

function dragging(event) {
  if (!event.dataTransfer?.types.includes("Files") || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  if (event.type === "dragenter") dragged++;
  if (event.type === "dragleave") dragged--;
  if (event.type === "drop") {
    dragged = 0;
    add(event.dataTransfer.files);
  }
  showDrop(dragged > 0);
}

function showDrop(shown) {
  if (!drop && shown) {
    drop = Object.assign(document.createElement("div"), { className: "drop" });
    drop.append(Object.assign(document.createElement("span"), { textContent: told.drop }));
    document.body.append(drop);
  }
  if (drop) drop.hidden = !shown;
}

export function add(files, { whenRead = null, whenUploaded = null } = {}) {
  for (const file of files) {
    if (chips.size >= Number(told.most)) return notice(told.tooMany);
    const chip = show({ name: file.name || "file", kind: kindOf(file), icon: kindOf(file), state: "waiting", note: "" });
    chip.file = file;
    chip.whenRead = whenRead;
    chip.whenUploaded = whenUploaded;
    if (file.size > Number(told.mostMegabytes) * 1e6) fail(chip, told.tooLarge, false);
  }
  next();
  changed();
  document.getElementById("text").focus({ preventScroll: true });
}

function kindOf({ type }) {
  const kind = type.split("/")[0];
  return ["image", "audio", "video"].includes(kind) ? kind : "document";
}

function next() {
  const busy = [...chips].filter((chip) => chip.request).length;
  const waiting = [...chips].filter((chip) => chip.state === "waiting" && !chip.request);
  waiting.slice(0, Math.max(0, PARALLEL - busy)).forEach(upload);
}

function upload(chip) {
  const body = new FormData();
  body.append("file", chip.file, chip.name);
  const chat = document.getElementById("main").dataset.session;
  if (chat) body.append("chat", chat);
  for (const name of ["agent", "model"]) if (form.elements[name]?.value) body.append(name, form.elements[name].value);
  const request = (chip.request = new XMLHttpRequest());
  request.open("POST", told.uploads);
  request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
  request.upload.onprogress = ({ loaded, total }) => progressed(chip, total ? (100 * loaded) / total : 0);
  request.onload = () => uploaded(chip, request);
  request.onerror = () => ended(chip, () => fail(chip, told.offline));
  request.send(body);
  progressed(chip, 0);
}

function progressed(chip, percent) {
  const shown = Math.min(99, Math.floor(percent));
  update(chip, { state: "uploading", progress: shown, note: told.uploading.replace("{}", `${shown}%`) });
}

function uploaded(chip, request) {
  ended(chip, () => {
    const answer = parsed(request.responseText);
    if (request.status === 201) {
      chip.file = null;
      update(chip, answer);
      announce(told.attached, chip);
      chip.whenUploaded?.(chip);
    } else if (request.status === 422) fail(chip, answer?.problem ?? told.failed, false);
    else if (request.status === 413) fail(chip, explanation(request.responseText) ?? told.tooLarge, false);
    else if (request.status === 403 || request.responseURL.includes("login")) fail(chip, told.signedOut, false);
    else fail(chip, request.status === 507 ? told.full : told.failed);
  });
}

function ended(chip, act) {
  chip.request = null;
  if (!chips.has(chip)) return; // removed meanwhile
  act();
  next();
  changed();
  follow();
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// What an error page says: too large, or no longer signed in.
function explanation(html) {
  return new DOMParser().parseFromString(html, "text/html").querySelector("main h1 + p")?.textContent;
}

function fail(chip, problem, canRetry = true) {
  update(chip, { state: "failed", note: problem, progress: null });
  chip.row.querySelector("[data-retry]").hidden = !canRetry;
  chip.row.scrollIntoView({ block: "nearest" }); // a long list scrolls
}

function show(about) {
  const row = template.content.firstElementChild.cloneNode(true);
  const chip = { row };
  chips.add(chip);
  list.append(row);
  row.querySelector("b").textContent = row.title = about.name;
  update(chip, about);
  return chip;
}

// A recording's text was moved into the composer.
export function refresh(chip, about) {
  update(chip, about);
}

function update(chip, about) {
  Object.assign(chip, about);
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
  showChoice(chip);
  if (state === "failed" && chip.id) row.querySelector("[data-retry]").hidden = false;
  else if (state !== "failed") row.querySelector("[data-retry]").hidden = true;
}

// How a model gets the text: whole, or searched. The size is the reason, in the list itself.
function showChoice({ row, state, sentAs, reason, id }) {
  const label = row.querySelector(".file-choice");
  const choice = label.querySelector("select");
  label.hidden = state !== "ready" || !sentAs;
  if (label.hidden) return;
  choice.value = choice.dataset.now = sentAs;
  choice.dataset.url = `${told.uploads}${id}/reading/`;
  choice.title = choice.firstElementChild.label = reason;
}

async function chosen({ target }) {
  const choice = target.closest?.("select[data-sent-as]");
  if (!choice) return;
  const body = new FormData();
  body.append("sent_as", choice.value);
  for (const name of ["agent", "model"]) if (form.elements[name]?.value) body.append(name, form.elements[name].value);
  choice.disabled = true;
  const answer = await post(choice.dataset.url, body);
  choice.disabled = false;
  const about = answer && (await answer.json().catch(() => null));
  if (answer?.ok) {
    choice.dataset.now = choice.value;
    choice.title = choice.firstElementChild.label = about.reason;
    notice("");
  } else {
    choice.value = choice.dataset.now;
    notice(about?.problem ?? (answer ? told.choiceFailed : told.choiceOffline));
  }
  choice.focus();
}

function pressed({ target }) {
  const button = target.closest("button");
  const chip = [...chips].find(({ row }) => row === button?.closest(".upload"));
  if (!chip) return;
  if ("remove" in button.dataset) remove(chip);
  else retry(chip);
}

export function remove(chip) {
  if (!chips.has(chip)) return;
  const after = chip.row.nextElementSibling ?? chip.row.previousElementSibling;
  chip.request?.abort();
  if (chip.id) post(`${told.uploads}${chip.id}/delete/`);
  discard(chip);
  announce(told.removed, chip);
  (after?.querySelector("[data-remove]") ?? document.getElementById("text")).focus();
  next();
  changed();
}

function discard(chip) {
  chips.delete(chip);
  chip.row.remove();
}

async function retry(chip) {
  if (!chip.id) {
    update(chip, { state: "waiting", note: "" });
    return next();
  }
  update(chip, { state: "reading", note: "" });
  const answer = await post(`${told.uploads}${chip.id}/retry/`);
  if (answer?.ok) update(chip, await answer.json());
  follow();
}

function post(url, body) {
  const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  return fetch(url, { method: "POST", headers, body }).catch(() => null);
}

// Asks how far the server is with reading, as long as it reads.
function follow() {
  clearTimeout(polling);
  const reading = [...chips].filter((chip) => chip.state === "reading");
  if (reading.length) polling = setTimeout(look, POLL);
  else sendHeld();
}

async function look() {
  const files = await status([...chips].map((chip) => chip.id).filter(Boolean));
  for (const about of files ?? []) {
    const chip = [...chips].find(({ id }) => id === about.id);
    if (chip) update(chip, about);
  }
  follow();
}

async function status(ids) {
  try {
    const answer = await fetch(`${told.uploads}?ids=${ids.join(",")}`, { headers: { Accept: "application/json" } });
    return answer.ok ? (await answer.json()).files : null;
  } catch {
    return null;
  }
}

const isBusy = () => [...chips].some(({ state }) => ["waiting", "uploading", "reading"].includes(state));

// The message waits for its files, visibly, and is sent when they are read.
function hold(event) {
  if (event.target !== form || form.dataset.sending === "again" || !isBusy()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  form.dataset.holding = "";
  notice(told.waiting);
}

function sendHeld() {
  if (form.dataset.holding === undefined || isBusy()) return;
  delete form.dataset.holding;
  notice("");
  if (form.elements.text.value.trim() || form.elements.files.value) form.requestSubmit();
}

function notice(words) {
  const place = document.getElementById("notice");
  place.textContent = words;
  place.dataset.level = words === told.waiting ? "" : "problem";
}

function announce(words, chip) {
  document.getElementById("announcer").textContent = words.replace("{}", chip.name);
}

// Tells the composer, which saves drafts; only what the server has can be sent.
function changed(isEdit = true) {
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
  for (const chip of [...chips]) discard(chip);
  changed(false);
}

// Shows files again that were uploaded before a reload, or came back from the queue.
export async function restoreUploads(ids) {
  if (!ids?.length) return;
  form.elements.files.value = ids.join(",");
  const known = new Set([...chips].map(({ id }) => id));
  const files = await status(ids);
  if (files === null) return;
  for (const about of files) if (!known.has(about.id)) show(about);
  changed(false); // the draft stays the same message
  follow();
}
