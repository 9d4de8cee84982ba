// Who is in a session is asked for when somebody wants to see it, and shown above the page.

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
