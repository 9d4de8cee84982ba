// Suggests people in the share dialog while a name is typed. The dialog's content is replaced
// after each change, so the handlers are on the document.

import { isComposing } from "./keys.js";
import { moveSelection } from "./listbox.js";

const DELAY_MS = 150;

let selectedIndex = -1;
let timer;
let request;

document.addEventListener("input", onInput);
document.addEventListener("compositionend", onInput);
document.addEventListener("keydown", onKeydown, true); // before Escape closes the dialog
document.addEventListener("focusout", ({ target }) => isField(target) && closeList(target));
document.addEventListener("mousedown", (event) => {
  const option = event.target.closest("#person-suggestions [role=option]");
  if (!option) return;
  event.preventDefault(); // the field keeps the focus
  chooseOption(document.getElementById("person-name"), option);
});

function isField(target) {
  return target.id === "person-name" && "suggestions" in target.dataset;
}

function list() {
  return document.getElementById("person-suggestions");
}

function onInput(event) {
  if (!isField(event.target) || event.isComposing) return;
  clearTimeout(timer);
  timer = setTimeout(loadSuggestions, DELAY_MS, event.target);
}

async function loadSuggestions(input) {
  request?.abort();
  request = new AbortController();
  const name = input.value.trim();
  if (!name) return closeList(input);
  const url = `${input.dataset.suggestions}?name=${encodeURIComponent(name)}`;
  // Without the server there are no suggestions; the full name still works.
  const response = await fetch(url, { signal: request.signal }).catch(() => null);
  if (!response?.ok || !input.isConnected || input.value.trim() !== name) return;
  const html = await response.text();
  const isTyping = document.activeElement === input;
  list().innerHTML = html;
  setOpen(input, isTyping && list().children.length > 0);
}

function onKeydown(event) {
  if (!isField(event.target) || isComposing(event) || list().hidden) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isTaken = selectedIndex >= 0 && !event.shiftKey && ["Enter", "Tab"].includes(event.key);
  if (!step && !isTaken && event.key !== "Escape") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (step) selectedIndex = moveSelection(event.target, list().children, selectedIndex, step);
  else if (isTaken) chooseOption(event.target, list().children[selectedIndex]);
  else closeList(event.target);
}

function chooseOption(input, option) {
  input.value = option.dataset.name;
  closeList(input);
  input.dispatchEvent(new Event("chosen"));
}

function closeList(input) {
  clearTimeout(timer);
  request?.abort();
  setOpen(input, false);
}

function setOpen(input, isOpen) {
  selectedIndex = -1;
  list().hidden = !isOpen;
  input.ariaExpanded = String(isOpen);
  input.removeAttribute("aria-activedescendant");
}
