// Menus of the list of chats: opened by button, right click, long press or keyboard.

import { isComposing } from "./keys.js";

const LONG_PRESS_MS = 500;
const GAP = 4;
let pressTimer;
let isHeld = false; // by a long press, whose end isn't a click on the row

// Opens a menu at an element or a point. Not closed by the browser, which would take the release
// of the right button for a click outside.
export function openMenu(menu, anchor, point) {
  closeAll();
  menu.anchorElement = anchor;
  menu.showPopover();
  const anchorBox = point ?? anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const fitsBelow = anchorBox.bottom + GAP + height <= innerHeight;
  menu.style.top = `${fitsBelow ? anchorBox.bottom + GAP : Math.max(GAP, anchorBox.top - GAP - height)}px`;
  menu.style.left = `${Math.max(GAP, Math.min(anchorBox.left, innerWidth - width - GAP))}px`;
  menuItems(menu)[0]?.focus();
}

export function closeMenu(menu) {
  menu.hidePopover();
  menu.anchorElement?.focus?.();
}

export function startMenus() {
  document.addEventListener("keydown", onKeydown);
  document.addEventListener("pointerdown", ({ target }) => target.closest("[role=menu]") || closeAll(), true);
  addEventListener("blur", closeAll);
  addEventListener("resize", closeAll);
}

function closeAll() {
  for (const menu of document.querySelectorAll(".row-menu:popover-open")) menu.hidePopover();
}

// Calls `open` with the element on which a menu was asked for, and where.
export function onContextMenu(selector, open) {
  document.addEventListener("contextmenu", (event) => {
    const row = event.target.closest?.(selector);
    if (!row) return;
    event.preventDefault();
    clearTimeout(pressTimer);
    isHeld ||= event.pointerType === "touch";
    const byKey = !event.clientX && !event.clientY;
    open(row, byKey ? undefined : pointBox(event));
  });
  document.addEventListener("pointerdown", (event) => {
    const row = event.pointerType === "touch" && event.target.closest?.(selector);
    clearTimeout(pressTimer);
    isHeld = false;
    if (row) pressTimer = setTimeout(() => {
      isHeld = true;
      open(row, pointBox(event));
    }, LONG_PRESS_MS);
  });
  document.addEventListener("click", (event) => {
    if (!isHeld || !event.target.closest?.(selector)) return;
    isHeld = false;
    event.preventDefault();
    event.stopPropagation();
  }, true);
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => clearTimeout(pressTimer));
  document.addEventListener("pointermove", ({ movementX, movementY }) => {
    if (Math.abs(movementX) + Math.abs(movementY) > 4) clearTimeout(pressTimer);
  });
}

const pointBox = ({ clientX: x, clientY: y }) => new DOMRect(x, y, 0, 0);
const menuItems = (menu) => [...menu.querySelectorAll("[role=menuitem]:not([hidden])")];

function onKeydown(event) {
  const menu = event.target.closest?.("[role=menu]");
  if (!menu || isComposing(event)) return;
  const items = menuItems(menu);
  const index = items.indexOf(document.activeElement);
  const nextIndex = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    event.stopPropagation();
    closeMenu(menu);
  }
  if (nextIndex === undefined) return;
  event.preventDefault();
  items.at(nextIndex % items.length).focus();
}
