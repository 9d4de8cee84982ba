// The menu of a chat closes like any menu: after a choice, on Escape and on a click elsewhere.

import { isComposing } from "./keys.js";

const menu = document.querySelector(".chat-menu");

export function startChatMenu() {
  if (!menu) return;
  document.addEventListener("click", ({ target }) => {
    if (!menu.contains(target) || target.closest("a")) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (isComposing(event) || event.key !== "Escape" || !menu.open) return;
    event.stopPropagation(); // Escape also stops a run
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
  });
}
