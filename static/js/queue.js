// Queued messages: shows a pressed one, and restores the focus.

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
  if (same ?? matchMedia("(pointer: fine)").matches) (same ?? text).focus({ preventScroll: true });
}
