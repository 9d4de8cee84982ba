// The form of a database: fields by kind, and the checklist of its tables.

import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

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
document.querySelector("[data-submit-keys]")?.addEventListener("keydown", onKeydown);
if (kind) showFields();

function showFields() {
  const isChecked = form.querySelector("#id_tls")?.value === "verify";
  for (const [name, kinds] of Object.entries(FIELDS)) {
    const row = form.querySelector(`.form-row.field-${name}`);
    if (!row) continue;
    row.hidden = !kinds.includes(kind.value) || (name === "ca_certificate" && !isChecked);
  }
}

function onInput({ target }) {
  const list = target.closest?.("[data-tables]");
  if (!list) return;
  if (target.matches("[data-search]")) return filterTables(list, target.value);
  const item = target.closest("[data-words]");
  if (!item) return;
  // A table allows all its columns, and a column its table.
  if (target.name?.endsWith("-table")) for (const box of columnBoxes(item)) box.checked = target.checked;
  if (target.name?.endsWith("-column")) item.querySelector(".table-allow").checked = columnBoxes(item).some((box) => box.checked);
  showCounts(list);
}

function columnBoxes(item) {
  return [...item.querySelectorAll(".tables-columns input")];
}

function showCounts(list) {
  const items = [...list.querySelectorAll("[data-words]")];
  const chosen = items.filter((item) => item.querySelector(".table-allow").checked);
  writeCount(list.querySelector("[data-count]"), chosen.length, items.length);
  for (const item of items) {
    const boxes = columnBoxes(item);
    const checkedCount = boxes.filter((box) => box.checked).length;
    writeCount(item.querySelector("[data-columns]"), checkedCount, boxes.length);
  }
}

function writeCount(element, chosen, total) {
  const text = element.dataset.template.replace("{chosen}", chosen).replace("{count}", total);
  if (element.textContent !== text) element.textContent = text;
}

function filterTables(list, query) {
  const words = searchWords(query);
  let matchCount = 0;
  for (const item of list.querySelectorAll("[data-words]")) {
    item.hidden = !hasAllWords(item.dataset.words, words);
    matchCount += !item.hidden;
  }
  list.querySelector("[data-none]").hidden = matchCount > 0;
}

function onKeydown(event) {
  const isEnter = event.key === "Enter" && (event.ctrlKey || event.metaKey);
  if (!isEnter || isComposing(event)) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}
