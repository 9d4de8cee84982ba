// A message at the end of the page, with a button that undoes what it says.
// It survives a page change, because deleting the open chat leads to another page.

import { isComposing } from "./keys.js";
import { act } from "./session_requests.js";
import { focusUnlessTouch } from "./touch.js";

const KEY = "ashiato-toast";
const PROBLEM_SECONDS = 10;
const PARTS = ".archived-note, #session-list, #session-search, #folder-choice, #people, [hx-target='#people'], [hx-target='#message-deletion']";
const toast = document.getElementById("toast");
let shown; // what can be undone
let timer;
let isLeaving = false; // requests that the browser cancels haven't failed

export function notify() {
  document.addEventListener("chats:notice", ({ detail }) => open(detail));
  document.addEventListener("htmx:sendError", (event) => failed(event, "offline"));
  document.addEventListener("htmx:responseError", (event) => failed(event, "failed"));
  addEventListener("beforeunload", () => (isLeaving = true));
  addEventListener("pageshow", () => (isLeaving = false));
  toast.addEventListener("click", pressed);
  document.addEventListener("keydown", shortcut);
  const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  if (kept && kept.until > Date.now()) show(kept);
  else sessionStorage.removeItem(KEY);
}

function open(detail) {
  const { text, undo, ids, level, seconds } = detail;
  show({ text, undo, ids, level, until: Date.now() + seconds * 1000 });
  if (detail.isFocused) toast.querySelector("[data-undo]").focus();
}

function failed({ detail }, why) {
  if (isLeaving || !detail.elt.closest(PARTS)) return;
  open({ text: toast.dataset[why], level: "problem", seconds: PROBLEM_SECONDS });
}

function show(about) {
  shown = about;
  sessionStorage.setItem(KEY, JSON.stringify(about));
  toast.hidden = false;
  toast.toggleAttribute("data-problem", about.level === "problem");
  toast.querySelector("p").textContent = about.text;
  toast.querySelector("[data-undo]").hidden = !about.undo;
  clearTimeout(timer);
  timer = setTimeout(close, about.until - Date.now());
}

function pressed({ target }) {
  if (target.closest("[data-undo]")) undo();
  else if (target.closest("[data-dismiss]")) close();
}

function undo() {
  const { undo: action, ids } = shown;
  close();
  act(action, ids, { undone: "1" });
}

function close() {
  clearTimeout(timer);
  shown = undefined;
  sessionStorage.removeItem(KEY);
  const hadFocus = toast.contains(document.activeElement);
  toast.hidden = true;
  if (hadFocus) focusUnlessTouch(document.getElementById("text") ?? document.body);
}

// In a text field, Ctrl Z is about the text.
function shortcut(event) {
  const undoes = event.key === "z" && !isComposing(event) && (event.ctrlKey || event.metaKey) && !event.shiftKey;
  if (!undoes || !shown?.undo || event.target.closest("input, textarea, [contenteditable]")) return;
  event.preventDefault();
  undo();
}
