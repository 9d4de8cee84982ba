// A message at the end of the page, with a button that undoes what it says.
// It survives a page change, because deleting the open chat leads to another page.

import { isComposing } from "./keys.js";
import { act } from "./session_requests.js";

const KEY = "ashiato-toast";
const toast = document.getElementById("toast");
let shown; // what can be undone
let timer;

export function notify() {
  document.addEventListener("chats:notice", ({ detail }) => open(detail));
  toast.addEventListener("click", pressed);
  document.addEventListener("keydown", shortcut);
  const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  if (kept && kept.until > Date.now()) show(kept);
  else sessionStorage.removeItem(KEY);
}

function open(detail) {
  const { text, undo, ids, level, seconds } = detail;
  show({ text, undo, ids, level, until: Date.now() + seconds * 1000 });
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
  toast.hidden = true;
}

// In a text field, Ctrl Z is about the text.
function shortcut(event) {
  const undoes = event.key === "z" && !isComposing(event) && (event.ctrlKey || event.metaKey) && !event.shiftKey;
  if (!undoes || !shown?.undo || event.target.closest("input, textarea, [contenteditable]")) return;
  event.preventDefault();
  undo();
}
