// A dialog closes by a click beside it or on one of its buttons for that.

export function closeOnClick(dialog) {
  dialog?.addEventListener("click", ({ target }) => {
    if (target === dialog || target.closest("[data-close]")) dialog.close();
  });
}
