// Folders: opened and closed, dragged into, renamed, moved, deleted.

import { closeOnClick } from "./dialogs.js";
import { closeMenu, openMenu } from "./menus.js";
import { actOnSessions, post, sessionList, urls } from "./session_requests.js";
import { chosenIds, endSelecting } from "./session_select.js";

const DRAG_TYPE = "application/x-ashiato-chats";
const menu = document.getElementById("folder-menu");
const dialog = document.getElementById("delete-folder");
const chooser = document.getElementById("move-sessions");
let movingIds = []; // the chats for which a folder is chosen

export function startFolders() {
  document.addEventListener("toggle", onToggle, true);
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  chooser.addEventListener("htmx:afterSwap", () => chooser.open || chooser.showModal());
  chooser.addEventListener("change", onFolderChange);
  closeOnClick(chooser);
  closeOnClick(dialog);
  document.addEventListener("dragstart", onDragstart);
  document.addEventListener("dragover", onDragover);
  document.addEventListener("dragleave", onDragleave);
  document.addEventListener("dragend", () => clearTarget());
  document.addEventListener("drop", onDrop);
}

export function chooseFolder(ids) {
  movingIds = ids;
  loadChoice(urls.folders);
}

export function newFolder() {
  movingIds = [];
  loadChoice(`${urls.folders}?new`);
}

function loadChoice(url) {
  htmx.ajax("GET", url, "#folder-choice").catch(() => {}); // the page says so
}

const folderUrl = (pk) => `${urls.folders}${pk}/`;

// Remembered on the server, so that other devices show it too.
function onToggle({ target }) {
  const collapsed = target.open ? "0" : "1";
  if (!target.matches?.(".folder[data-folder]") || target.dataset.collapsed === collapsed) return;
  target.dataset.collapsed = collapsed;
  const body = new FormData();
  body.set("collapsed", collapsed);
  const { "X-CSRFToken": token } = JSON.parse(document.body.getAttribute("hx-headers"));
  fetch(folderUrl(target.dataset.folder), { method: "POST", body, headers: { "X-CSRFToken": token }, keepalive: true });
}

function onClick({ target }) {
  const opener = target.closest("[data-folder-menu]");
  const item = target.closest("[data-folder-act]");
  if (opener) {
    menu.dataset.folder = opener.dataset.folderMenu;
    openMenu(menu, opener);
  }
  if (item) runAction(item.dataset.folderAct, menu.dataset.folder);
}

function runAction(action, folderId) {
  const folder = document.getElementById(`folder-${folderId}`);
  closeMenu(menu);
  if (action === "rename") rename(folder);
  if (action === "up") post(folderUrl(folderId), { shift: "-1" });
  if (action === "down") post(folderUrl(folderId), { shift: "1" });
  if (action === "archive") actOnSessions("archive", [...folder.querySelectorAll(".session")].map(({ dataset }) => dataset.pk));
  if (action !== "delete") return;
  dialog.querySelector("form").action = `${folderUrl(folderId)}delete/`;
  dialog.querySelector("[data-title]").textContent = nameOf(folder);
  dialog.showModal();
}

const nameOf = (folder) => folder.querySelector("summary .title").textContent;

function rename(folder) {
  const form = document.getElementById("rename-folder").content.firstElementChild.cloneNode(true);
  form.action = folderUrl(folder.dataset.folder);
  form.elements.name.value = nameOf(folder);
  folder.querySelector("summary").hidden = true;
  folder.before(form);
  form.elements.name.select();
}

function onSubmit(event) {
  const form = event.target;
  if (form.matches("#delete-folder form")) {
    event.preventDefault();
    dialog.close();
    post(form.getAttribute("action"));
  }
  if (!form.matches("[data-move]")) return;
  event.preventDefault();
  const { folder, name } = form.elements;
  const isNew = !folder || folder.value === "new";
  if (isNew && !name.value.trim()) return name.focus();
  chooser.close();
  const request = isNew
    ? post(urls.folders, { name: name.value, ids: movingIds.join(",") })
    : actOnSessions("move", movingIds, { folder: folder.value });
  request.then((isDone) => isDone && endSelecting());
}

function onFolderChange({ target }) {
  const { name } = target.form.elements;
  if (target.name !== "folder") return;
  name.closest("label").hidden = target.value !== "new";
  name.required = target.value === "new";
  if (target.value === "new") name.focus();
}

// The dragged row, or all selected ones if it is one of them.
function onDragstart(event) {
  const row = event.target.closest?.(".session");
  if (!row) return;
  const { pk } = row.dataset;
  const ids = chosenIds().includes(pk) ? chosenIds() : [pk];
  event.dataTransfer.setData(DRAG_TYPE, ids.join(","));
  event.dataTransfer.effectAllowed = "all";
}

function dropTarget({ target, dataTransfer }) {
  if (!dataTransfer?.types.includes(DRAG_TYPE) || sessionList().matches("[data-query], [data-archive]")) return null;
  return target.closest?.(".folder[data-folder]") ?? target.closest?.("#sessions");
}

function onDragover(event) {
  const target = dropTarget(event);
  if (!target) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "move";
  clearTarget(target);
  target.toggleAttribute("data-over", true);
}

function onDragleave(event) {
  const target = dropTarget(event);
  if (target && !target.contains(event.relatedTarget)) target.removeAttribute("data-over");
}

function clearTarget(except) {
  for (const element of document.querySelectorAll("[data-over]")) if (element !== except) element.removeAttribute("data-over");
}

function onDrop(event) {
  const target = dropTarget(event);
  clearTarget();
  if (!target) return;
  event.preventDefault();
  const ids = event.dataTransfer.getData(DRAG_TYPE).split(",");
  actOnSessions("move", ids, { folder: target.dataset.folder ?? "" });
}
