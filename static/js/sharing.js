// The members of a chat are loaded on request, and displayed in a dialog.

import "./people_suggestions.js";

const dialog = document.getElementById("share-session");

export function share() {
  dialog?.addEventListener("htmx:afterSwap", open);
  dialog?.addEventListener("click", closed);
}

function open() {
  if (!dialog.open) dialog.showModal();
}

function closed({ target }) {
  if (target === dialog || target.closest("[data-close]")) dialog.close();
}
