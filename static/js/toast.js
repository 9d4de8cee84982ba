// A message at the end of the page, with a button that undoes what it says.
// It survives a page change, because deleting the open chat leads to another page.

import { isComposing } from "./keys.js";
import { actOnSessions } from "./session_requests.js";
import { focusUnlessTouch } from "./touch.js";

const STORAGE_KEY = "ashiato-toast";
const PROBLEM_SECONDS = 10;
const PARTS = ".archived-note, #session-list, #session-search, #folder-choice, #people, [hx-target='#people'], [hx-target='#message-deletion']";
const toast = document.getElementById("toast");
let shownNotice; // what can be undone
let timer;
let isLeaving = false; // requests that the browser cancels haven't failed

export function startToast() {
  document.addEventListener("chats:notice", ({ detail }) => openToast(detail));
  document.addEventListener("htmx:sendError", (event) => onRequestFailed(event, "offline"));
  document.addEventListener("htmx:responseError", (event) => onRequestFailed(event, "failed"));
  addEventListener("beforeunload", () => (isLeaving = true));
  addEventListener("pageshow", () => (isLeaving = false));
  toast.addEventListener("click", onClick);
  document.addEventListener("keydown", onKeydown);
  const savedNotice = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "null");
  if (savedNotice && savedNotice.until > Date.now()) showToast(savedNotice);
  else sessionStorage.removeItem(STORAGE_KEY);
}

function openToast(detail) {
  const { text, undo, ids, level, seconds } = detail; // htmx adds an element
  showToast({ text, undo, ids, level, until: Date.now() + seconds * 1000 });
  if (detail.isFocused) toast.querySelector("[data-undo]").focus();
}

function onRequestFailed({ detail }, reason) {
  if (isLeaving || !detail.elt.closest(PARTS)) return;
  openToast({ text: toast.dataset[reason], level: "problem", seconds: PROBLEM_SECONDS });
}

function showToast(notice) {
  shownNotice = notice;
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(notice));
  toast.hidden = false;
  toast.toggleAttribute("data-problem", notice.level === "problem");
  toast.querySelector("p").textContent = notice.text;
  toast.querySelector("[data-undo]").hidden = !notice.undo;
  clearTimeout(timer);
  timer = setTimeout(closeToast, notice.until - Date.now());
}

function onClick({ target }) {
  if (target.closest("[data-undo]")) undo();
  else if (target.closest("[data-dismiss]")) closeToast();
}

function undo() {
  const { undo: action, ids } = shownNotice;
  closeToast();
  actOnSessions(action, ids, { undone: "1" });
}

function closeToast() {
  clearTimeout(timer);
  shownNotice = undefined;
  sessionStorage.removeItem(STORAGE_KEY);
  const hadFocus = toast.contains(document.activeElement);
  toast.hidden = true;
  if (hadFocus) focusUnlessTouch(document.getElementById("text") ?? document.body);
}

// In a text field, Ctrl Z is about the text.
function onKeydown(event) {
  const undoes = event.key === "z" && !isComposing(event) && (event.ctrlKey || event.metaKey) && !event.shiftKey;
  if (!undoes || !shownNotice?.undo || event.target.closest("input, textarea, [contenteditable]")) return;
  event.preventDefault();
  undo();
}
