// The list of chats: search, rename, file and delete in place.

import { forgetChat } from "./drafts.js";
import { isComposing } from "./keys.js";
import { closeMenu, moveInMenus, onMenuAsked, openMenu } from "./menus.js";
import { exportSessions } from "./session_export.js";
import { chooseFolder, keepFolders, newFolder } from "./session_folders.js";
import { act, list, post, search, show } from "./session_requests.js";
import { findSessions } from "./session_search.js";
import { endSelecting, selectSessions, startSelecting } from "./session_select.js";
import { notify } from "./toast.js";

const dialog = document.getElementById("delete-session");
const menu = document.getElementById("session-menu");
const listMenu = document.getElementById("list-menu");
let deleting = []; // the chats that the dialog asks about
let kept; // what a replaced list had that the new one lacks

export function tend() {
  document.addEventListener("click", pressed);
  document.addEventListener("submit", submitted);
  document.addEventListener("focusout", ({ target }) => {
    if (target.closest(".rename")) leaveRename(target.closest(".rename"));
  });
  document.addEventListener("keydown", escaped, true);
  document.addEventListener("htmx:oobBeforeSwap", keepSearch);
  document.addEventListener("htmx:oobAfterSwap", takeChanges);
  document.addEventListener("htmx:beforeSwap", ({ detail }) => detail.target.id === "sessions" && keepRest());
  document.addEventListener("htmx:afterSwap", ({ detail }) => detail.target.id === "sessions" && putBack());
  document.addEventListener("htmx:load", markCurrent);
  document.addEventListener("htmx:afterRequest", unarchived);
  document.addEventListener("pointerover", nameWhole);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  onMenuAsked(".session", openRowMenu);
  moveInMenus();
  keepFolders();
  selectSessions(actOnAll);
  findSessions();
  notify();
}

function pressed({ target }) {
  const row = target.closest("[data-menu]")?.closest(".session");
  const item = target.closest("[data-act]");
  const listItem = target.closest("[data-list-act], [data-list]");
  if (row) openRowMenu(row);
  if (item) chosen(item.dataset.act);
  if (target.closest("[data-list-menu]")) openMenu(listMenu, target.closest("[data-list-menu]"));
  if (listItem) chosenInList(listItem.dataset);
  if (dialog.open && (target === dialog || target.closest("#delete-session [data-close]"))) dialog.close();
}

function openRowMenu(row, point) {
  const facts = {
    own: !("others" in row.dataset),
    pinned: "pinned" in row.dataset,
    unpinned: !("pinned" in row.dataset),
    archived: list().hasAttribute("data-archive"),
    listed: !list().hasAttribute("data-archive"),
  };
  for (const item of menu.children) item.hidden = item.dataset.for !== undefined && !facts[item.dataset.for];
  menu.dataset.pk = row.dataset.pk;
  openMenu(menu, row.querySelector("[data-menu]"), point);
}

function chosen(action) {
  const { pk } = menu.dataset;
  const row = list().querySelector(`#session-${pk}`);
  closeMenu(menu);
  if (!row) return;
  if (action === "rename") rename(row);
  else if (action === "delete") askFirst([pk]);
  else if (action === "move") chooseFolder([pk]);
  else if (action === "share") openSharing(pk);
  else if (action === "project") location.href = `/chat/${pk}/project/`;
  else if (action === "export") exportSessions([pk]);
  else if (action === "select") startSelecting(row);
  else act(action, [pk]);
}

function chosenInList({ listAct, list: name }) {
  if (listMenu.matches(":popover-open")) closeMenu(listMenu);
  if (listAct === "select") startSelecting();
  else if (listAct === "folder") newFolder();
  else {
    endSelecting();
    show(name);
  }
}

function actOnAll(action, ids) {
  if (action === "delete") askFirst(ids);
  else if (action === "move") chooseFolder(ids);
  else if (action === "export") exportSessions(ids);
  else act(action, ids).then((isDone) => isDone && endSelecting());
}

function openSharing(pk) {
  const url = `/chat/${pk}/people/`;
  if (document.getElementById("people")) htmx.ajax("GET", url, "#people");
  else location.assign(url);
}

function rename(row) {
  const form = document.getElementById("rename-session").content.firstElementChild.cloneNode(true);
  const input = form.elements.title;
  form.action = `/chat/${row.dataset.pk}/rename/`;
  input.value = row.querySelector(".title").textContent;
  row.querySelector("a").hidden = row.querySelector(".session-actions").hidden = true;
  row.append(form);
  input.select();
}

function leaveRename(form) {
  if (form.dataset.left !== undefined) return;
  form.dataset.left = ""; // removing it blurs it, which calls this again
  const row = form.closest(".session") ?? form.nextElementSibling;
  form.remove();
  for (const part of row.querySelectorAll("a[hidden], summary[hidden], .session-actions[hidden]")) part.hidden = false;
  return row;
}

function askFirst(ids) {
  const [one, heading] = [ids.length === 1, dialog.querySelector("h2")];
  deleting = ids;
  heading.textContent = one ? heading.dataset.one : heading.dataset.many.replace("{}", ids.length);
  const row = list().querySelector(`#session-${ids[0]} .title`);
  dialog.querySelector("[data-title]").textContent = one ? (row?.textContent ?? "") : "";
  dialog.showModal();
}

function submitted(event) {
  const form = event.target;
  if (form.matches(".rename")) {
    event.preventDefault();
    form.dataset.left = "";
    post(form.action, Object.fromEntries(new FormData(form))).then((isDone) => isDone || renameAgain(form));
  }
  if (form.matches("#delete-session form")) {
    event.preventDefault();
    dialog.close();
    act("delete", deleting).then((isDone) => isDone && deleted());
  }
}

function deleted() {
  deleting.forEach(forgetChat);
  endSelecting();
}

// What was typed stays, to be sent again.
function renameAgain(form) {
  delete form.dataset.left;
  form.elements[0].focus();
}

function escaped(event) {
  const form = event.target.closest?.(".rename");
  if (event.key !== "Escape" || !form || isComposing(event)) return;
  event.stopPropagation();
  leaveRename(form)?.querySelector("a, summary").focus();
}

// Changed rows come in their own element, because search results may not be in the list.
function takeChanges({ detail }) {
  if (detail.target.id === "sessions") putBack();
  if (detail.target.id !== "session-changes") return;
  for (const row of document.querySelectorAll("#session-changes > .session")) {
    const shown = list().querySelector(`#${row.id}`);
    showTitle(row.querySelector("a")); // also while the list shows search results
    row.remove();
    if (shown && !shown.querySelector(".rename:not([data-left])")) shown.replaceWith(row);
  }
  markCurrent({ target: list() });
}

// A frame may replace the whole list; search results and the archive stay.
function keepSearch({ target, detail }) {
  if (target.id !== "sessions") return;
  const renaming = target.querySelector(".rename:not([data-left])");
  const elsewhere = search.value || target.hasAttribute("data-archive");
  if (renaming || elsewhere) detail.shouldSwap = false;
  else keepRest();
  if (search.value && !renaming) htmx.trigger(search, "search");
}

// Older chats that were loaded while scrolling aren't in the new list. They are taken out before
// the swap, and so keep their place.
function keepRest() {
  const now = list();
  const older = [...now.querySelectorAll(":scope > .older-rows")];
  const focused = document.activeElement?.closest?.("#sessions .session");
  kept = {
    top: now.parentElement.scrollTop,
    focus: focused && { row: focused.id, menu: document.activeElement.matches("[data-menu]") },
    last: older.length ? [...now.querySelectorAll(":scope > ul > .session")].at(-1) : undefined,
    rest: older.length && !search.value ? [...older, now.querySelector(":scope > .older")].filter(Boolean) : [],
  };
  for (const part of kept.rest) part.remove();
}

function putBack() {
  if (!kept) return;
  const { top, focus, last, rest } = kept;
  kept = undefined;
  const now = list();
  const next = now.querySelector(":scope > .older");
  if (rest.length && next) {
    for (const part of rest)
      for (const row of part.querySelectorAll?.(".session") ?? [])
        if (now.querySelector(`#${row.id}`)) row.remove();
    if (last && !now.querySelector(`#${last.id}`)) rest[0].querySelector("ul")?.prepend(last); // one more came before it
    next.replaceWith(...rest);
  }
  now.parentElement.scrollTop = top;
  if (focus && document.activeElement === document.body)
    now.querySelector(`#${focus.row} ${focus.menu ? "[data-menu]" : "a"}`)?.focus();
}

function unarchived({ detail }) {
  if (detail.successful && detail.elt.matches(".archived-note")) detail.elt.remove();
}

function markCurrent({ target }) {
  if (!target.matches("#sessions, .session, body")) return;
  for (const link of list().querySelectorAll(".session > a")) {
    const here = link.pathname === location.pathname;
    link.toggleAttribute("aria-current", here);
    if (!here) continue;
    link.setAttribute("aria-current", "page");
    showTitle(link);
  }
}

function showTitle(link) {
  if (link.pathname !== location.pathname) return;
  const title = link.querySelector(".title").textContent;
  document.getElementById("session-title").textContent = title;
  document.title = `${title} · Ashiato`;
}

// A title that doesn't fit is readable under the pointer.
function nameWhole({ target }) {
  const title = target.closest?.("#session-list :is(.session > a, summary)")?.querySelector(".title");
  if (title && !title.closest("[title]") && title.scrollWidth > title.clientWidth) title.title = title.textContent;
}
