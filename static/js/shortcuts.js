// Keyboard shortcuts of all pages: a registry, the list of them, and the switch for single keys.

import { isComposing } from "./keys.js";

const list = document.getElementById("shortcuts");
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const actions = new Map();

// Adds a shortcut such as "mod+k"; `mod` is Ctrl, or ⌘ on a Mac.
export function register(keys, act) {
  actions.set(keys, act);
}

export function start() {
  register("?", showList);
  addEventListener("keydown", pressed, true);
  document.addEventListener("click", clicked);
  if (isMac) for (const key of document.querySelectorAll("[data-mod]")) key.textContent = "⌘";
  for (const part of list?.querySelectorAll("[data-where]") ?? [])
    part.toggleAttribute("data-here", Boolean(document.querySelector(`body ${part.dataset.where}`)));
}

export function showList() {
  if (list && !list.open) list.showModal();
}

// First of all handlers, so that a switched-off key reaches none of them.
function pressed(event) {
  if (isComposing(event)) return;
  const isSingle = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (isSingle && (isEditable(event.target) || document.querySelector("dialog:modal"))) return;
  if (isSingle && list?.dataset.singleKeys === "off") {
    if (event.key !== " ") event.stopImmediatePropagation();
    return;
  }
  const act = actions.get(nameOf(event));
  if (!act || act(event) === false) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

function nameOf(event) {
  const mod = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (!mod) return event.ctrlKey || event.metaKey || event.altKey ? "" : event.key;
  return event.altKey ? "" : `mod+${event.shiftKey ? "shift+" : ""}${event.key.toLowerCase()}`;
}

function isEditable(target) {
  return Boolean(target.closest?.("input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]"));
}

function clicked({ target }) {
  if (target.closest?.("[data-show-shortcuts]")) showList();
  if (target === list) list.close();
}
