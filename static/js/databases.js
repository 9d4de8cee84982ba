// The form of a database: fields by kind, and the checklist of its tables.

import { isComposing } from "./keys.js";

const FIELDS = {
  file: ["sqlite"],
  host: ["postgresql", "mysql"],
  port: ["postgresql", "mysql"],
  database: ["postgresql", "mysql"],
  username: ["postgresql", "mysql"],
  password: ["postgresql", "mysql"],
  tls: ["postgresql", "mysql"],
  ca_certificate: ["postgresql", "mysql"],
};

const kind = document.querySelector("#id_kind");
const form = document.querySelector("#databaseconnection_form");

kind?.addEventListener("change", showFields);
form?.querySelector("#id_tls")?.addEventListener("change", showFields);
form?.addEventListener("input", onInput);
form?.addEventListener("change", onInput);
document.querySelector("[data-submit-keys]")?.addEventListener("keydown", submitByKeys);
if (kind) showFields();

function showFields() {
  const isChecked = form.querySelector("#id_tls")?.value === "verify";
  for (const [name, kinds] of Object.entries(FIELDS)) {
    const row = form.querySelector(`.form-row.field-${name}`);
    if (!row) continue;
    const isOn = kinds.includes(kind.value) && (name !== "ca_certificate" || isChecked);
    row.hidden = !isOn;
  }
}

function onInput({ target }) {
  const list = target.closest?.("[data-tables]");
  if (!list) return;
  if (target.matches("[data-search]")) return search(list, target.value);
  const item = target.closest("[data-words]");
  if (item && target.name?.endsWith("-table")) setColumns(item, target.checked);
  if (item && target.name?.endsWith("-column")) setTable(item);
  if (item) count(list);
}

function columns(item) {
  return [...item.querySelectorAll(".tables-columns input")];
}

function setColumns(item, isOn) {
  for (const box of columns(item)) box.checked = isOn;
}

function setTable(item) {
  item.querySelector(".table-allow").checked = columns(item).some((box) => box.checked);
}

function count(list) {
  const items = [...list.querySelectorAll("[data-words]")];
  const chosen = items.filter((item) => item.querySelector(".table-allow").checked);
  write(list.querySelector("[data-count]"), chosen.length, items.length);
  for (const item of items) {
    const boxes = columns(item);
    const on = boxes.filter((box) => box.checked).length;
    write(item.querySelector("[data-columns]"), on, boxes.length);
  }
}

function write(place, chosen, all) {
  const text = place.dataset.template.replace("{chosen}", chosen).replace("{count}", all);
  if (place.textContent !== text) place.textContent = text;
}

function search(list, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const item of list.querySelectorAll("[data-words]")) {
    const all = item.dataset.words.toLowerCase();
    item.hidden = !words.every((word) => all.includes(word));
    found += !item.hidden;
  }
  list.querySelector("[data-none]").hidden = found > 0;
}

function submitByKeys(event) {
  const isEnter = event.key === "Enter" && (event.ctrlKey || event.metaKey);
  if (!isEnter || isComposing(event)) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}
