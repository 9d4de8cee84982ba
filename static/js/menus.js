// Menus of the list of chats: opened by button, right click, long press or keyboard.

import { isComposing } from "./keys.js";

const LONG_PRESS = 500;
const GAP = 4;
let press;
let isHeld = false; // by a long press, whose end isn't a click on the row

// Open a menu at an element or a point. Not closed by the browser, which would take the release
// of the right button for a click outside.
export function openMenu(menu, anchor, point) {
  closeAll();
  menu.anchorElement = anchor;
  menu.showPopover();
  place(menu, point ?? anchor.getBoundingClientRect());
  items(menu)[0]?.focus();
}

export function closeMenu(menu) {
  menu.hidePopover();
  menu.anchorElement?.focus?.();
}

export function moveInMenus() {
  document.addEventListener("keydown", moved);
  document.addEventListener("pointerdown", ({ target }) => target.closest("[role=menu]") || closeAll(), true);
  addEventListener("blur", closeAll);
  addEventListener("resize", closeAll);
}

function closeAll() {
  for (const menu of document.querySelectorAll(".row-menu:popover-open")) menu.hidePopover();
}

// Call with the element on which a menu was asked for, and where.
export function onMenuAsked(selector, open) {
  document.addEventListener("contextmenu", (event) => {
    const row = event.target.closest?.(selector);
    if (!row) return;
    event.preventDefault();
    clearTimeout(press);
    isHeld ||= event.pointerType === "touch";
    const byKey = !event.clientX && !event.clientY;
    open(row, byKey ? undefined : at(event));
  });
  document.addEventListener("pointerdown", (event) => {
    const row = event.pointerType === "touch" && event.target.closest?.(selector);
    clearTimeout(press);
    isHeld = false;
    if (row) press = setTimeout(() => hold(() => open(row, at(event))), LONG_PRESS);
  });
  document.addEventListener("click", (event) => event.target.closest?.(selector) && released(event), true);
  for (const end of ["pointerup", "pointercancel", "pointermove"])
    document.addEventListener(end, (event) => end !== "pointermove" || far(event) ? clearTimeout(press) : undefined);
}

function hold(act) {
  isHeld = true;
  act();
}

function released(event) {
  if (!isHeld) return;
  isHeld = false;
  event.preventDefault();
  event.stopPropagation();
}

const far = ({ movementX, movementY }) => Math.abs(movementX) + Math.abs(movementY) > 4;
const at = ({ clientX: x, clientY: y }) => new DOMRect(x, y, 0, 0);
const items = (menu) => [...menu.querySelectorAll("[role=menuitem]:not([hidden])")];

function place(menu, around) {
  const { width, height } = menu.getBoundingClientRect();
  const below = around.bottom + GAP + height <= innerHeight;
  const top = below ? around.bottom + GAP : Math.max(GAP, around.top - GAP - height);
  menu.style.top = `${top}px`;
  menu.style.left = `${Math.max(GAP, Math.min(around.left, innerWidth - width - GAP))}px`;
}

function moved(event) {
  const menu = event.target.closest?.("[role=menu]");
  if (!menu || isComposing(event)) return;
  const all = items(menu);
  const now = all.indexOf(document.activeElement);
  const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    event.stopPropagation();
    closeMenu(menu);
  }
  if (next === undefined) return;
  event.preventDefault();
  all.at(next % all.length).focus();
}
