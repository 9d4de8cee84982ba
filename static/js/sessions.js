// The list of chats: search, rename and delete in place.

import { isComposing } from "./keys.js";

const list = () => document.getElementById("sessions");
const search = document.getElementById("session-search");
const dialog = document.getElementById("delete-session");

export function tend() {
  document.addEventListener("click", pressed);
  document.addEventListener("submit", submitted);
  document.addEventListener("focusout", ({ target }) => {
    if (target.closest(".rename")) leaveRename(target.closest(".rename"));
  });
  document.addEventListener("keydown", escaped, true);
  document.addEventListener("htmx:oobBeforeSwap", keepSearch);
  document.addEventListener("htmx:oobAfterSwap", takeChanges);
  document.addEventListener("htmx:load", markCurrent);
  search.form.addEventListener("submit", (event) => event.preventDefault());
}

function pressed({ target }) {
  const renamed = target.closest("[data-rename]");
  const deleted = target.closest("[data-delete]");
  if (renamed) rename(renamed);
  if (deleted) askFirst(deleted);
  if (target.closest("[data-close]") || target === dialog) dialog.close();
}

function rename(button) {
  const row = button.closest(".session");
  const form = document.getElementById("rename-session").content.firstElementChild.cloneNode(true);
  const input = form.elements.title;
  form.action = button.dataset.rename;
  input.value = row.querySelector(".title").textContent;
  row.querySelector("a").hidden = row.querySelector(".session-actions").hidden = true;
  row.append(form);
  input.select();
}

function leaveRename(form) {
  if (form.dataset.left !== undefined) return;
  form.dataset.left = ""; // removing it blurs it, which calls this again
  const row = form.closest(".session");
  form.remove();
  row.querySelector("a").hidden = row.querySelector(".session-actions").hidden = false;
}

function askFirst(button) {
  dialog.querySelector("form").action = button.dataset.delete;
  dialog.querySelector("[data-title]").textContent =
    button.closest(".session").querySelector(".title").textContent;
  dialog.showModal();
}

function submitted(event) {
  const form = event.target;
  if (!form.matches(".rename, #delete-session form")) return;
  event.preventDefault();
  form.dataset.left = "";
  dialog.close();
  htmx.ajax("POST", form.action, {
    source: form,
    target: "#sessions",
    swap: "outerHTML",
    values: { q: search.value },
  });
}

function escaped(event) {
  const form = event.target.closest?.(".rename");
  if (event.key !== "Escape" || !form || isComposing(event)) return;
  const row = form.closest(".session");
  event.stopPropagation();
  leaveRename(form);
  row.querySelector("a").focus();
}

// Changed rows come in their own element, because search results may not be in the list.
function takeChanges({ detail }) {
  if (detail.target.id !== "session-changes") return;
  for (const row of document.querySelectorAll("#session-changes > .session")) {
    const shown = list().querySelector(`#${row.id}`);
    row.remove();
    if (shown && !shown.querySelector(".rename:not([data-left])")) shown.replaceWith(row);
  }
  markCurrent({ target: list() });
}

// A frame may replace the whole list; search results stay.
function keepSearch({ target, detail }) {
  if (target.id !== "sessions") return;
  const renaming = target.querySelector(".rename:not([data-left])");
  if (renaming || search.value) detail.shouldSwap = false;
  if (search.value && !renaming) htmx.trigger(search, "search");
}

function markCurrent({ target }) {
  if (!target.matches("#sessions, .session, body")) return;
  for (const link of list().querySelectorAll("a")) {
    const here = link.pathname === location.pathname;
    link.toggleAttribute("aria-current", here);
    if (!here) continue;
    link.setAttribute("aria-current", "page");
    const title = link.querySelector(".title").textContent;
    document.getElementById("session-title").textContent = title;
    document.title = `${title} · Ashiato`;
  }
}
