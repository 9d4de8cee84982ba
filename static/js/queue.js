// Messages that wait their turn: one that was pressed shows it, and the keyboard is not lost.

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

// A frame brings the whole queue, and with the old one goes what had the focus.
function remember({ target }) {
  if (target.id === "queue" && target.contains(document.activeElement)) focused = document.activeElement.id;
}

function focusAgain() {
  if (!focused) return;
  const same = document.getElementById(focused);
  focused = "";
  if (same ?? matchMedia("(pointer: fine)").matches) (same ?? text).focus({ preventScroll: true });
}
