// Keeps the typed text until the server has acknowledged it.

import { announce, announceRuns, isNextComing } from "./announcer.js";
import { forgetStarted, saveDraft, saveDraftSoon, takeDraft, watchDrafts } from "./drafts.js";
import { isComposing } from "./keys.js";
import { byteCount, showTooLong } from "./long_text.js";
import { whole } from "./run.js";
import { toEnd } from "./scroll.js";
import { focusUnlessTouch, hasTouchKeyboard } from "./touch.js";
import { clearUploads, restoreUploads } from "./uploads.js";

const composer = document.getElementById("composer");
const form = document.getElementById("ask");
const text = form.elements.text;
const stopForm = document.getElementById("stop");
const stopButton = composer.querySelector(".stop");
const growsByItself = CSS.supports("field-sizing", "content");
const socketed = form.hasAttribute("ws-send");
let live = "";

export function compose() {
  restore();
  document.addEventListener("submit", sent, true);
  document.addEventListener("click", exampleChosen);
  document.addEventListener("click", proposed);
  form.elements.agent?.addEventListener("change", chosen);
  document.addEventListener("keydown", shortcut);
  text.addEventListener("keydown", typed);
  text.addEventListener("input", edited);
  form.addEventListener("files", edited);
  document.addEventListener("htmx:wsConfigSend", trim);
  document.addEventListener("htmx:wsAfterMessage", readState);
  document.addEventListener("htmx:oobBeforeSwap", noticed);
  document.addEventListener("htmx:wsOpen", sendAgain);
  addEventListener("pageshow", release);
  readState();
  announceRuns();
  if (hasTouchKeyboard()) text.enterKeyHint = "enter";
  if (!location.hash) focusUnlessTouch(text);
}

function typed(event) {
  if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
  if (hasTouchKeyboard() && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  form.requestSubmit();
}

function shortcut(event) {
  if (event.key === "Escape" && live && composer.contains(event.target) && !isComposing(event)) stop();
}

function stop() {
  if (!stopButton.disabled) stopForm.requestSubmit();
}

function sent(event) {
  if (event.target === stopForm) return stopping();
  if (event.target !== form) return;
  const repeated = form.dataset.sending === "again";
  const size = byteCount(text.value);
  if (size > Number(form.dataset.most)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    showTooLong(Math.floor((100 * form.dataset.most) / size));
    release();
    return;
  }
  if ((!text.value.trim() && !files()) || (form.dataset.sending !== undefined && !repeated)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  form.elements.client_id.value ||= newId();
  keep();
  form.dataset.sending = "";
  text.readOnly = true;
  document.getElementById("notice").textContent = "";
  toEnd();
}

// Disabled after the form is sent, because the browser would omit it otherwise.
function stopping() {
  setTimeout(() => (stopButton.disabled = true));
}

function chosen() {
  for (const about of composer.querySelectorAll("[data-agent]"))
    about.hidden = about.dataset.agent !== form.elements.agent.value;
}

// A message whose acknowledgement was lost is sent again with the same id.
function sendAgain({ detail }) {
  stopButton.disabled = false;
  if (form.dataset.sending === undefined || detail.socketWrapper.queue.length) return;
  form.dataset.sending = "again";
  form.requestSubmit();
}

function trim({ detail }) {
  detail.headers = null;
  delete detail.parameters.csrfmiddlewaretoken;
}

function readState() {
  const state = document.getElementById("composer-state").dataset;
  const kept = isKept(form.elements.client_id.value, state.acknowledged);
  if (kept) clear();
  if (state.refused && state.refused === form.elements.client_id.value) renew();
  if (state.returned || state.returnedBase64 || state.returnedFiles) takeBack(state);
  // Otherwise the buttons would flicker between two answers.
  if (state.liveRun !== live && (state.liveRun || !isNextComing())) show(state.liveRun);
  if (kept?.closest?.("#queue")) announce("queued");
}

// Only once: a field that the user empties afterwards stays empty.
function takeBack(state) {
  const words = state.returned ?? (state.returnedBase64 ? decoded(state.returnedBase64) : "");
  const ids = (state.returnedFiles ?? "").split(",").filter(Boolean).map(Number);
  delete state.returned;
  delete state.returnedBase64;
  delete state.returnedFiles;
  announce("returned");
  restoreUploads(ids);
  if (text.value.trim()) return;
  text.value = words;
  edited();
}

function decoded(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

// Another message has this id: the text stays, and is sent with a new one.
function renew() {
  form.elements.client_id.value = "";
  keep();
  release();
}

function isKept(id, acknowledged) {
  return id && (id === acknowledged || document.querySelector(`[data-client-id="${CSS.escape(id)}"]`));
}

function show(run) {
  if (live && !run) document.getElementById("notice").textContent = "";
  live = run;
  composer.toggleAttribute("data-live", Boolean(run));
  stopButton.hidden = !run;
  stopButton.disabled = false;
  if (stopForm) stopForm.elements.run.value = run;
}

function noticed({ target, detail }) {
  if (target.id === "notice" && detail.fragment.textContent.trim()) release();
}

// A suggested text is sent at once, unless something else is being typed.
async function proposed({ target }) {
  const button = target.closest?.("[data-say]");
  if (!button) return;
  const asked = button.closest(".message")?.querySelector(".question");
  const long = button.dataset.say ? null : asked?.querySelector("[data-whole]");
  const question = long ? await whole(long.href) : asked?.querySelector("p").textContent;
  if (!text.value.trim()) {
    text.value = button.dataset.say ?? question;
    edited();
    form.requestSubmit();
  }
  focusUnlessTouch(text);
}

function exampleChosen({ target }) {
  const example = target.closest?.("[data-example]");
  if (!example) return;
  text.value = example.dataset.example;
  edited();
  focusUnlessTouch(text);
}

function edited() {
  if (form.elements.client_id.value) form.elements.client_id.value = "";
  grow();
  saveDraftSoon(typedSoFar);
}

function grow() {
  if (growsByItself) return;
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

function clear() {
  text.value = "";
  form.elements.client_id.value = "";
  document.querySelector(".welcome")?.remove();
  clearUploads();
  keep();
  release();
  grow();
}

function release() {
  delete form.dataset.sending;
  text.readOnly = false;
}

function keep() {
  saveDraft(...typedSoFar());
}

function typedSoFar() {
  return [text.value, form.elements.client_id.value, files()];
}

const files = () => form.elements.files.value;

function restore() {
  watchDrafts(typedSoFar);
  if (socketed) forgetStarted(isKept);
  if (text.value) return keep(); // typed before this was loaded, or returned by the server
  const draft = takeDraft();
  if (!draft) return;
  text.value = draft.text;
  form.elements.client_id.value = draft.id;
  grow();
  restoreUploads(draft.files?.split(",").filter(Boolean).map(Number));
}

// crypto.randomUUID isn't available over plain http from another machine.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
