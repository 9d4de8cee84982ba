// Several chats are exported as a ZIP, in a format that a dialog asks for.

import { closeOnClick } from "./dialogs.js";

const dialog = document.getElementById("export-chats");

export function openExport(ids) {
  const heading = dialog.querySelector("h2");
  heading.textContent = ids.length === 1 ? heading.dataset.one : heading.dataset.many.replace("{}", ids.length);
  const fields = ids.map((pk) => Object.assign(document.createElement("input"), { type: "hidden", name: "ids", value: pk }));
  dialog.querySelector("[data-ids]").replaceChildren(...fields);
  dialog.showModal();
}

closeOnClick(dialog);
// The download starts, and the page stays.
dialog?.addEventListener("submit", () => setTimeout(() => dialog.close()));
