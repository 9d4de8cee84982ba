// The sidebar folds to icons; this device remembers it.

import { registerShortcut } from "./shortcuts.js";
import { writeStored } from "./storage.js";

const root = document.documentElement;

export function startSidebar() {
  const button = document.querySelector("[data-fold]");
  if (!button) return;
  button.addEventListener("click", fold);
  registerShortcut("mod+b", fold);
}

function fold() {
  root.dataset.sidebar = root.dataset.sidebar === "folded" ? "open" : "folded";
  writeStored("ashiato-sidebar", root.dataset.sidebar);
}
