// Keeps the typed text until the server has acknowledged it.

import { announce, isNextComing, startAnnouncer } from "./announcer.js";
import { newClientId } from "./connection.js";
import { forgetStarted, saveDraft, saveDraftSoon, takeDraft, watchDrafts } from "./drafts.js";
import { isComposing } from "./keys.js";
import { byteCount, showTooLong } from "./long_text.js";
import { questionText } from "./run.js";
import { scrollToEnd } from "./scroll.js";
import { growToFit } from "./text_fields.js";
import { focusUnlessTouch, hasTouchKeyboard } from "./touch.js";
import { clearUploads, restoreUploads } from "./uploads.js";

const composer = document.getElementById("composer");
const form = document.getElementById("ask");
const text = form.elements.text;
const stopForm = document.getElementById("stop");
const stopButton = composer.querySelector(".stop");
const usesSocket = form.hasAttribute("ws-send");
let liveRun = "";

export function startComposer({ takesFocus = true } = {}) {
  restoreDraft();
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("click", onExampleClick);
  document.addEventListener("click", onSuggestionClick);
  form.elements.agent?.addEventListener("change", onAgentChange);
  document.addEventListener("keydown", onDocumentKeydown);
  text.addEventListener("keydown", onKeydown);
  text.addEventListener("input", onInput);
  form.addEventListener("files", onInput);
  document.addEventListener("htmx:wsConfigSend", onConfigSend);
  document.addEventListener("htmx:wsAfterMessage", readState);
  document.addEventListener("htmx:oobBeforeSwap", onBeforeSwap);
  document.addEventListener("htmx:wsOpen", onSocketOpen);
  addEventListener("pageshow", unlock);
  readState();
  startAnnouncer();
  if (hasTouchKeyboard()) text.enterKeyHint = "enter";
  if (takesFocus && !location.hash) focusUnlessTouch(text);
}

function onKeydown(event) {
  if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
  if (hasTouchKeyboard() && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  form.requestSubmit();
}

function onDocumentKeydown(event) {
  if (event.key !== "Escape" || !liveRun || !composer.contains(event.target) || isComposing(event)) return;
  if (!stopButton.disabled) stopForm.requestSubmit();
}

function onSubmit(event) {
  // Disabled after the form is sent, because the browser would omit it otherwise.
  if (event.target === stopForm) setTimeout(() => (stopButton.disabled = true));
  if (event.target !== form) return;
  const isRepeated = form.dataset.sending === "again";
  const size = byteCount(text.value);
  if (size > Number(form.dataset.most)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    showTooLong(Math.floor((100 * form.dataset.most) / size));
    unlock();
    return;
  }
  if ((!text.value.trim() && !fileIds()) || (form.dataset.sending !== undefined && !isRepeated)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  form.elements.client_id.value ||= newClientId();
  saveNow();
  form.dataset.sending = "";
  text.readOnly = true;
  document.getElementById("notice").textContent = "";
  scrollToEnd();
}

function onAgentChange() {
  for (const description of composer.querySelectorAll("[data-agent]"))
    description.hidden = description.dataset.agent !== form.elements.agent.value;
}

// A message whose acknowledgement was lost is sent again with the same id.
function onSocketOpen({ detail }) {
  stopButton.disabled = false;
  if (form.dataset.sending === undefined || detail.socketWrapper.queue.length) return;
  form.dataset.sending = "again";
  form.requestSubmit();
}

function onConfigSend({ detail }) {
  detail.headers = null;
  delete detail.parameters.csrfmiddlewaretoken;
}

function readState() {
  const state = document.getElementById("composer-state").dataset;
  const saved = isSaved(form.elements.client_id.value, state.acknowledged);
  if (saved) clearComposer();
  // Another message has this id: the text stays, and is sent with a new one.
  if (state.refused && state.refused === form.elements.client_id.value) {
    form.elements.client_id.value = "";
    saveNow();
    unlock();
  }
  if (state.returned || state.returnedBase64 || state.returnedFiles) takeReturned(state);
  // Otherwise the buttons would flicker between two answers.
  if (state.liveRun !== liveRun && (state.liveRun || !isNextComing())) showRun(state.liveRun);
  if (saved?.closest?.("#queue")) announce("queued");
}

// Only once: a field that the user empties afterwards stays empty.
function takeReturned(state) {
  const bytes = Uint8Array.from(atob(state.returnedBase64 ?? ""), (letter) => letter.charCodeAt(0));
  const returnedText = state.returned ?? new TextDecoder().decode(bytes);
  const ids = (state.returnedFiles ?? "").split(",").filter(Boolean).map(Number);
  delete state.returned;
  delete state.returnedBase64;
  delete state.returnedFiles;
  announce("returned");
  restoreUploads(ids);
  if (text.value.trim()) return;
  text.value = returnedText;
  onInput();
}

function isSaved(id, acknowledged) {
  return id && (id === acknowledged || document.querySelector(`[data-client-id="${CSS.escape(id)}"]`));
}

function showRun(run) {
  if (liveRun && !run) document.getElementById("notice").textContent = "";
  liveRun = run;
  composer.toggleAttribute("data-live", Boolean(run));
  stopButton.hidden = !run;
  stopButton.disabled = false;
  if (stopForm) stopForm.elements.run.value = run;
}

function onBeforeSwap({ target, detail }) {
  if (target.id === "notice" && detail.fragment.textContent.trim()) unlock();
}

// A suggested text is sent at once, unless something else is being typed.
async function onSuggestionClick({ target }) {
  const button = target.closest?.("[data-say]");
  if (!button) return;
  const question = button.closest(".message")?.querySelector(".question");
  const suggestion = button.dataset.say ?? (await questionText(question));
  if (!text.value.trim()) {
    text.value = suggestion;
    onInput();
    form.requestSubmit();
  }
  focusUnlessTouch(text);
}

function onExampleClick({ target }) {
  const example = target.closest?.("[data-example]");
  if (!example) return;
  text.value = example.dataset.example;
  onInput();
  focusUnlessTouch(text);
}

function onInput() {
  if (form.elements.client_id.value) form.elements.client_id.value = "";
  growToFit(text);
  saveDraftSoon(currentDraft);
}

function clearComposer() {
  text.value = "";
  form.elements.client_id.value = "";
  document.querySelector(".welcome")?.remove();
  clearUploads();
  saveNow();
  unlock();
  growToFit(text);
}

function unlock() {
  delete form.dataset.sending;
  text.readOnly = false;
}

function saveNow() {
  saveDraft(...currentDraft());
}

function currentDraft() {
  return [text.value, form.elements.client_id.value, fileIds()];
}

const fileIds = () => form.elements.files.value;

function restoreDraft() {
  watchDrafts(currentDraft);
  if (usesSocket) forgetStarted(isSaved);
  if (text.value) return saveNow(); // typed before this was loaded, or returned by the server
  const draft = takeDraft();
  if (!draft) return;
  text.value = draft.text;
  form.elements.client_id.value = draft.id;
  growToFit(text);
  restoreUploads(draft.files?.split(",").filter(Boolean).map(Number));
}
