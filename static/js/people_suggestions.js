// Suggests people in the share dialog while a name is typed. The dialog's content is replaced
// after each change, so the handlers are on the document.

import { isComposing } from "./keys.js";

const DELAY_MS = 150;

let marked = -1;
let timer;
let request;

document.addEventListener("input", typed);
document.addEventListener("compositionend", typed);
document.addEventListener("keydown", pressed, true); // before Escape closes the dialog
document.addEventListener("focusout", ({ target }) => isField(target) && close(target));
document.addEventListener("mousedown", (event) => {
  const option = event.target.closest("#person-suggestions [role=option]");
  if (!option) return;
  event.preventDefault(); // the field keeps the focus
  take(field(), option);
});

function isField(target) {
  return target.id === "person-name" && "suggestions" in target.dataset;
}

function field() {
  return document.getElementById("person-name");
}

function list() {
  return document.getElementById("person-suggestions");
}

function typed(event) {
  if (!isField(event.target) || event.isComposing) return;
  clearTimeout(timer);
  timer = setTimeout(offer, DELAY_MS, event.target);
}

async function offer(input) {
  request?.abort();
  request = new AbortController();
  const name = input.value.trim();
  if (!name) return close(input);
  const url = `${input.dataset.suggestions}?name=${encodeURIComponent(name)}`;
  // Without the server there are no suggestions; the full name still works.
  const answer = await fetch(url, { signal: request.signal }).catch(() => null);
  if (!answer?.ok || !input.isConnected || input.value.trim() !== name) return;
  const html = await answer.text();
  const isTyping = document.activeElement === input;
  list().innerHTML = html;
  show(input, isTyping && list().children.length > 0);
}

function pressed(event) {
  if (!isField(event.target) || isComposing(event) || list().hidden) return;
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isTaken = marked >= 0 && !event.shiftKey && ["Enter", "Tab"].includes(event.key);
  if (!move && !isTaken && event.key !== "Escape") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (move) mark(event.target, move);
  else if (isTaken) take(event.target, list().children[marked]);
  else close(event.target);
}

function mark(input, by) {
  const options = list().children;
  options[marked]?.setAttribute("aria-selected", "false");
  marked = marked < 0 && by < 0 ? options.length - 1 : (marked + by + options.length) % options.length;
  options[marked].ariaSelected = "true";
  options[marked].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", options[marked].id);
}

function take(input, option) {
  input.value = option.dataset.name;
  close(input);
}

function close(input) {
  clearTimeout(timer);
  request?.abort();
  show(input, false);
}

function show(input, isOpen) {
  marked = -1;
  list().hidden = !isOpen;
  input.ariaExpanded = String(isOpen);
  input.removeAttribute("aria-activedescendant");
}
