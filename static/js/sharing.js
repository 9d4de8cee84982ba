// The members of a chat are loaded on request, and displayed in a dialog.

import { closeOnClick } from "./dialogs.js";
import "./people_suggestions.js";

const dialog = document.getElementById("share-session");

export function startSharing() {
  dialog?.addEventListener("htmx:afterSwap", () => dialog.open || dialog.showModal());
  closeOnClick(dialog);
}
