// Keyboard shortcuts of all pages: a registry, the list of them, and the switch for single keys.

import { hasModifier, isComposing } from "./keys.js";

const list = document.getElementById("shortcuts");
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const actions = new Map();
const EDITABLE = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]";

// Adds a shortcut such as "mod+k"; `mod` is Ctrl, or ⌘ on a Mac.
export function registerShortcut(keys, action) {
  actions.set(keys, action);
}

export function startShortcuts() {
  registerShortcut("?", showShortcuts);
  addEventListener("keydown", onKeydown, true);
  document.addEventListener("click", onClick);
  if (isMac) for (const key of document.querySelectorAll("[data-mod]")) key.textContent = "⌘";
  for (const part of list?.querySelectorAll("[data-where]") ?? [])
    part.toggleAttribute("data-here", Boolean(document.querySelector(`body ${part.dataset.where}`)));
}

export function showShortcuts() {
  if (list && !list.open) list.showModal();
}

// First of all handlers, so that a switched-off key reaches none of them.
function onKeydown(event) {
  if (isComposing(event)) return;
  const isSingle = event.key.length === 1 && !hasModifier(event);
  if (isSingle && (event.target.closest?.(EDITABLE) || document.querySelector("dialog:modal"))) return;
  if (isSingle && list?.dataset.singleKeys === "off") {
    if (event.key !== " ") event.stopImmediatePropagation();
    return;
  }
  const action = actions.get(shortcutName(event));
  if (!action || action(event) === false) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

function shortcutName(event) {
  const hasMod = isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (!hasMod) return hasModifier(event) ? "" : event.key;
  return event.altKey ? "" : `mod+${event.shiftKey ? "shift+" : ""}${event.key.toLowerCase()}`;
}

function onClick({ target }) {
  if (target.closest?.("[data-show-shortcuts]")) showShortcuts();
  if (target === list) list.close();
}
