// Folders: opened and closed, dragged into, renamed, moved, deleted.

import { closeMenu, openMenu } from "./menus.js";
import { act, list, post, urls } from "./session_requests.js";
import { endSelecting, selected } from "./session_select.js";

const TYPE = "application/x-ashiato-chats";
const menu = document.getElementById("folder-menu");
const dialog = document.getElementById("delete-folder");
const chooser = document.getElementById("move-sessions");
let moving = []; // the chats for which a folder is chosen

export function keepFolders() {
  document.addEventListener("toggle", toggled, true);
  document.addEventListener("click", pressed);
  document.addEventListener("submit", submitted);
  chooser.addEventListener("htmx:afterSwap", () => chooser.open || chooser.showModal());
  chooser.addEventListener("change", named);
  document.addEventListener("dragstart", dragged);
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", left);
  document.addEventListener("dragend", () => clear());
  document.addEventListener("drop", dropped);
}

export function chooseFolder(ids) {
  moving = ids;
  htmx.ajax("GET", urls.folders, "#folder-choice");
}

export function newFolder() {
  moving = [];
  htmx.ajax("GET", `${urls.folders}?new`, "#folder-choice");
}

const folderUrl = (pk) => `${urls.folders}${pk}/`;

// Remembered on the server, so that other devices show it too.
function toggled({ target }) {
  const collapsed = target.open ? "0" : "1";
  if (!target.matches?.(".folder[data-folder]") || target.dataset.collapsed === collapsed) return;
  target.dataset.collapsed = collapsed;
  const body = new FormData();
  body.set("collapsed", collapsed);
  const { "X-CSRFToken": token } = JSON.parse(document.body.getAttribute("hx-headers"));
  fetch(folderUrl(target.dataset.folder), { method: "POST", body, headers: { "X-CSRFToken": token }, keepalive: true });
}

function pressed(event) {
  const { target } = event;
  const opener = target.closest("[data-folder-menu]");
  const item = target.closest("[data-folder-act]");
  if (opener) {
    menu.dataset.folder = opener.dataset.folderMenu;
    openMenu(menu, opener);
  }
  if (item) chosen(item.dataset.folderAct, menu.dataset.folder);
  for (const each of [dialog, chooser])
    if (each.open && (target === each || (target.closest("[data-close]") && each.contains(target)))) each.close();
}

function chosen(what, pk) {
  const folder = document.getElementById(`folder-${pk}`);
  closeMenu(menu);
  if (what === "rename") rename(folder);
  if (what === "up") post(folderUrl(pk), { shift: "-1" });
  if (what === "down") post(folderUrl(pk), { shift: "1" });
  if (what === "archive") act("archive", inside(folder));
  if (what === "delete") askFirst(folder);
}

const inside = (folder) => [...folder.querySelectorAll(".session")].map(({ dataset }) => dataset.pk);
const nameOf = (folder) => folder.querySelector("summary .title").textContent;

function rename(folder) {
  const form = document.getElementById("rename-folder").content.firstElementChild.cloneNode(true);
  form.action = folderUrl(folder.dataset.folder);
  form.elements.name.value = nameOf(folder);
  folder.querySelector("summary").hidden = true;
  folder.before(form);
  form.elements.name.select();
}

function askFirst(folder) {
  dialog.querySelector("form").action = `${folderUrl(folder.dataset.folder)}delete/`;
  dialog.querySelector("[data-title]").textContent = nameOf(folder);
  dialog.showModal();
}

function submitted(event) {
  const form = event.target;
  if (form.matches("#delete-folder form")) {
    event.preventDefault();
    dialog.close();
    post(form.getAttribute("action"));
  }
  if (form.matches("[data-move]")) {
    event.preventDefault();
    move(form);
  }
}

function move(form) {
  const { folder, name } = form.elements;
  const isNew = !folder || folder.value === "new";
  if (isNew && !name.value.trim()) return name.focus();
  chooser.close();
  const moved = isNew
    ? post(urls.folders, { name: name.value, ids: moving.join(",") })
    : act("move", moving, { folder: folder.value });
  moved.then((isDone) => isDone && endSelecting());
}

function named({ target }) {
  const { name } = target.form.elements;
  if (target.name !== "folder") return;
  name.closest("label").hidden = target.value !== "new";
  name.required = target.value === "new";
  if (target.value === "new") name.focus();
}

// The dragged row, or all selected ones if it is one of them.
function dragged(event) {
  const row = event.target.closest?.(".session");
  if (!row) return;
  const { pk } = row.dataset;
  const all = selected().includes(pk) ? selected() : [pk];
  event.dataTransfer.setData(TYPE, all.join(","));
  event.dataTransfer.effectAllowed = "all";
}

function goal({ target, dataTransfer }) {
  if (!dataTransfer?.types.includes(TYPE) || list().matches("[data-query], [data-archive]")) return null;
  return target.closest?.(".folder[data-folder]") ?? target.closest?.("#sessions");
}

function over(event) {
  const here = goal(event);
  if (!here) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "move";
  clear(here);
  here.toggleAttribute("data-over", true);
}

function left(event) {
  const here = goal(event);
  if (here && !here.contains(event.relatedTarget)) here.removeAttribute("data-over");
}

function clear(but) {
  for (const each of document.querySelectorAll("[data-over]")) if (each !== but) each.removeAttribute("data-over");
}

function dropped(event) {
  const here = goal(event);
  clear();
  if (!here) return;
  event.preventDefault();
  const ids = event.dataTransfer.getData(TYPE).split(",");
  act("move", ids, { folder: here.dataset.folder ?? "" });
}
