// Several chats are exported as a ZIP, in a format that a dialog asks for.

const dialog = document.getElementById("export-chats");

export function exportSessions(ids) {
  const heading = dialog.querySelector("h2");
  heading.textContent = ids.length === 1 ? heading.dataset.one : heading.dataset.many.replace("{}", ids.length);
  dialog.querySelector("[data-ids]").replaceChildren(...ids.map(field));
  dialog.showModal();
}

function field(pk) {
  const input = document.createElement("input");
  input.type = "hidden";
  input.name = "ids";
  input.value = pk;
  return input;
}

dialog?.addEventListener("click", ({ target }) => {
  if (target === dialog || target.closest("[data-close]")) dialog.close();
});
// The download starts, and the page stays.
dialog?.addEventListener("submit", () => setTimeout(() => dialog.close()));
