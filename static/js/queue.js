// Queued messages: shows a pressed one, and restores the focus.

import { focusUnlessTouch } from "./touch.js";

const text = document.getElementById("text");
let focusedId = "";

export function startQueue() {
  document.addEventListener("click", onClick);
  document.addEventListener("htmx:oobBeforeSwap", onBeforeSwap);
  document.addEventListener("htmx:wsAfterMessage", restoreFocus);
}

function onClick({ target }) {
  const button = target.closest?.("#queue button");
  if (button) button.closest(".message").dataset.pressed = "";
}

// A frame replaces the whole queue, including the focused element.
function onBeforeSwap({ target }) {
  if (target.id === "queue" && target.contains(document.activeElement)) focusedId = document.activeElement.id;
}

function restoreFocus() {
  if (!focusedId) return;
  const element = document.getElementById(focusedId);
  focusedId = "";
  if (element) element.focus({ preventScroll: true });
  else focusUnlessTouch(text);
}
