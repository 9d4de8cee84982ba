// The list of chats: search, rename, file and delete in place.

import { forgetChat } from "./drafts.js";
import { isComposing } from "./keys.js";
import { closeMenu, onContextMenu, openMenu, startMenus } from "./menus.js";
import { openExport } from "./session_export.js";
import { chooseFolder, newFolder, startFolders } from "./session_folders.js";
import { actOnSessions, post, searchField, sessionList, showList } from "./session_requests.js";
import { startSessionSearch } from "./session_search.js";
import { endSelecting, startSelecting, startSessionSelection } from "./session_select.js";
import { startToast } from "./toast.js";

const dialog = document.getElementById("delete-session");
const menu = document.getElementById("session-menu");
const listMenu = document.getElementById("list-menu");
let deletingIds = []; // the chats that the dialog asks about
let savedState; // what a replaced list had that the new one lacks

export function startSessions() {
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  document.addEventListener("focusout", ({ target }) => {
    if (target.closest(".rename")) leaveRename(target.closest(".rename"));
  });
  document.addEventListener("keydown", onKeydown, true);
  document.addEventListener("htmx:oobBeforeSwap", onOobBeforeSwap);
  document.addEventListener("htmx:oobAfterSwap", onOobAfterSwap);
  document.addEventListener("htmx:beforeSwap", ({ detail }) => detail.target.id === "sessions" && saveListState());
  document.addEventListener("htmx:afterSwap", ({ detail }) => detail.target.id === "sessions" && restoreListState());
  document.addEventListener("htmx:load", markCurrent);
  document.addEventListener("htmx:afterRequest", onAfterRequest);
  document.addEventListener("pointerover", onPointerover);
  searchField.form.addEventListener("submit", (event) => event.preventDefault());
  onContextMenu(".session", openRowMenu);
  startMenus();
  startFolders();
  startSessionSelection(runBulkAction);
  startSessionSearch();
  startToast();
}

function onClick({ target }) {
  const row = target.closest("[data-menu]")?.closest(".session");
  const item = target.closest("[data-act]");
  const listItem = target.closest("[data-list-act], [data-list]");
  if (row) openRowMenu(row);
  if (item) runAction(item.dataset.act);
  if (target.closest("[data-list-menu]")) openMenu(listMenu, target.closest("[data-list-menu]"));
  if (listItem) runListAction(listItem.dataset);
  if (dialog.open && (target === dialog || target.closest("#delete-session [data-close]"))) dialog.close();
}

function openRowMenu(row, point) {
  const facts = {
    own: !("others" in row.dataset),
    pinned: "pinned" in row.dataset,
    unpinned: !("pinned" in row.dataset),
    archived: sessionList().hasAttribute("data-archive"),
    listed: !sessionList().hasAttribute("data-archive"),
  };
  for (const item of menu.children) item.hidden = item.dataset.for !== undefined && !facts[item.dataset.for];
  menu.dataset.pk = row.dataset.pk;
  openMenu(menu, row.querySelector("[data-menu]"), point);
}

function runAction(action) {
  const { pk } = menu.dataset;
  const row = sessionList().querySelector(`#session-${pk}`);
  closeMenu(menu);
  if (!row) return;
  if (action === "rename") rename(row);
  else if (action === "delete") confirmDelete([pk]);
  else if (action === "move") chooseFolder([pk]);
  else if (action === "share" && document.getElementById("people")) htmx.ajax("GET", `/chat/${pk}/people/`, "#people").catch(() => {}); // the page says so
  else if (action === "share") location.assign(`/chat/${pk}/people/`);
  else if (action === "project") location.href = `/chat/${pk}/project/`;
  else if (action === "export") openExport([pk]);
  else if (action === "select") startSelecting(row);
  else actOnSessions(action, [pk]);
}

function runListAction({ listAct, list: name }) {
  if (listMenu.matches(":popover-open")) closeMenu(listMenu);
  if (listAct === "select") startSelecting();
  else if (listAct === "folder") newFolder();
  else {
    endSelecting();
    showList(name);
  }
}

function runBulkAction(action, ids) {
  if (action === "delete") confirmDelete(ids);
  else if (action === "move") chooseFolder(ids);
  else if (action === "export") openExport(ids);
  else actOnSessions(action, ids).then((isDone) => isDone && endSelecting());
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

function confirmDelete(ids) {
  const isOne = ids.length === 1;
  const heading = dialog.querySelector("h2");
  deletingIds = ids;
  heading.textContent = isOne ? heading.dataset.one : heading.dataset.many.replace("{}", ids.length);
  const row = sessionList().querySelector(`#session-${ids[0]} .title`);
  dialog.querySelector("[data-title]").textContent = isOne ? (row?.textContent ?? "") : "";
  dialog.showModal();
}

function onSubmit(event) {
  const form = event.target;
  if (form.matches(".rename")) {
    event.preventDefault();
    form.dataset.left = "";
    post(form.action, Object.fromEntries(new FormData(form))).then((isDone) => {
      if (isDone) return;
      delete form.dataset.left; // what was typed stays, to be sent again
      form.elements[0].focus();
    });
  }
  if (form.matches("#delete-session form")) {
    event.preventDefault();
    dialog.close();
    actOnSessions("delete", deletingIds).then((isDone) => {
      if (!isDone) return;
      deletingIds.forEach(forgetChat);
      endSelecting();
    });
  }
}

function onKeydown(event) {
  const form = event.target.closest?.(".rename");
  if (event.key !== "Escape" || !form || isComposing(event)) return;
  event.stopPropagation();
  leaveRename(form)?.querySelector("a, summary").focus();
}

// Changed rows come in their own element, because search results may not be in the list.
function onOobAfterSwap({ detail }) {
  if (detail.target.id === "sessions") restoreListState();
  if (detail.target.id !== "session-changes") return;
  for (const row of document.querySelectorAll("#session-changes > .session")) {
    const shownRow = sessionList().querySelector(`#${row.id}`);
    showTitle(row.querySelector("a")); // also while the list shows search results
    row.remove();
    if (shownRow && !shownRow.querySelector(".rename:not([data-left])")) shownRow.replaceWith(row);
  }
  markCurrent({ target: sessionList() });
}

// A frame may replace the whole list; search results and the archive stay.
function onOobBeforeSwap({ target, detail }) {
  if (target.id !== "sessions") return;
  const renameForm = target.querySelector(".rename:not([data-left])");
  const isOtherList = searchField.value || target.hasAttribute("data-archive");
  if (renameForm || isOtherList) detail.shouldSwap = false;
  else saveListState();
  if (searchField.value && !renameForm) htmx.trigger(searchField, "search");
}

// Older chats that were loaded while scrolling aren't in the new list. They are taken out before
// the swap, and so keep their place.
function saveListState() {
  const list = sessionList();
  const olderRows = [...list.querySelectorAll(":scope > .older-rows")];
  const focusedRow = document.activeElement?.closest?.("#sessions .session");
  savedState = {
    top: list.parentElement.scrollTop,
    focus: focusedRow && { row: focusedRow.id, menu: document.activeElement.matches("[data-menu]") },
    last: olderRows.length ? [...list.querySelectorAll(":scope > ul > .session")].at(-1) : undefined,
    rest: olderRows.length && !searchField.value ? [...olderRows, list.querySelector(":scope > .older")].filter(Boolean) : [],
  };
  for (const part of savedState.rest) part.remove();
}

function restoreListState() {
  if (!savedState) return;
  const { top, focus, last, rest } = savedState;
  savedState = undefined;
  const list = sessionList();
  const next = list.querySelector(":scope > .older");
  if (rest.length && next) {
    for (const rowsPart of rest)
      for (const row of rowsPart.querySelectorAll?.(".session") ?? [])
        if (list.querySelector(`#${row.id}`)) row.remove();
    if (last && !list.querySelector(`#${last.id}`)) rest[0].querySelector("ul")?.prepend(last); // one more came before it
    next.replaceWith(...rest);
  }
  list.parentElement.scrollTop = top;
  if (focus && document.activeElement === document.body)
    list.querySelector(`#${focus.row} ${focus.menu ? "[data-menu]" : "a"}`)?.focus();
}

function onAfterRequest({ detail }) {
  if (detail.successful && detail.elt.matches(".archived-note")) detail.elt.remove();
}

function markCurrent({ target }) {
  if (!target.matches("#sessions, .session, body")) return;
  for (const link of sessionList().querySelectorAll(".session > a")) {
    const isHere = link.pathname === location.pathname;
    link.toggleAttribute("aria-current", isHere);
    if (!isHere) continue;
    link.setAttribute("aria-current", "page");
    showTitle(link);
  }
}

function showTitle(link) {
  if (link.pathname !== location.pathname) return;
  const title = link.querySelector(".title").textContent;
  document.getElementById("session-title").textContent = title;
  document.title = `${title}${document.title.slice(document.title.lastIndexOf(" · "))}`;
}

// A title that doesn't fit is readable under the pointer.
function onPointerover({ target }) {
  const title = target.closest?.("#session-list :is(.session > a, summary)")?.querySelector(".title");
  if (title && !title.closest("[title]") && title.scrollWidth > title.clientWidth) title.title = title.textContent;
}
