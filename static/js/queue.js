// Queued messages: shows a pressed one, and restores the focus.

import { focusUnlessTouch } from "./touch.js";

const text = document.getElementById("text");
let focused = "";

export function queue() {
  document.addEventListener("click", pressed);
  document.addEventListener("htmx:oobBeforeSwap", remember);
  document.addEventListener("htmx:wsAfterMessage", focusAgain);
}

function pressed({ target }) {
  const button = target.closest?.("#queue button");
  if (button) button.closest(".message").dataset.pressed = "";
}

// A frame replaces the whole queue, including the focused element.
function remember({ target }) {
  if (target.id === "queue" && target.contains(document.activeElement)) focused = document.activeElement.id;
}

function focusAgain() {
  if (!focused) return;
  const same = document.getElementById(focused);
  focused = "";
  if (same) same.focus({ preventScroll: true });
  else focusUnlessTouch(text);
}
