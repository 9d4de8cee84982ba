// The list of runs: its filter suggests fields and values, and runs are selected. The forms work without it.

import { hasModifier, isComposing } from "./keys.js";
import { moveSelection } from "./listbox.js";
import { announceInput, replaceRange } from "./text_fields.js";

const input = document.getElementById("q");
const offers = document.getElementById("offers");
const WORD = /(?:^|\s)(-?)([^\s:：]*)$/u;
const VALUE = /(?:^|\s)-?([A-Za-z]+)[:：](?:[^\s,]*,)*([^\s,"]*)$/u;
const MAX_OPTIONS = 12;

let fields;
let selectedIndex = -1;
let lastBox; // the one that was clicked last

input.addEventListener("focus", loadFields);
input.addEventListener("input", () => renderOptions());
// Text being composed isn't submitted; Japanese would be, syllable by syllable.
document.addEventListener("input", (event) => event.isComposing && event.stopPropagation(), true);
input.addEventListener("compositionend", () => announceInput(input));
input.addEventListener("click", () => renderOptions());
input.addEventListener("keydown", onKeydown);
input.addEventListener("blur", closeList);
offers.addEventListener("mousedown", (event) => {
  event.preventDefault(); // the field keeps the focus
  const option = event.target.closest("[role=option]");
  if (option) chooseOption(option);
});
document.addEventListener("keydown", onDocumentKeydown);
document.addEventListener("click", onClick);
document.addEventListener("change", updateSelection);
document.addEventListener("htmx:afterSettle", updateSelection);
addEventListener("pageshow", updateSelection);
updateSelection();

// Without the server there are no suggestions; the next attempt asks again.
async function loadFields() {
  if (fields) return;
  const response = await fetch(input.dataset.completions).catch(() => null);
  if (!response?.ok) return;
  fields = (await response.json()).fields;
  if (document.activeElement === input) renderOptions();
}

function renderOptions(isAsked = !input.value) {
  const textBefore = input.value.slice(0, input.selectionStart);
  const isIdle = !isAsked && /(^|\s)$/.test(textBefore); // a term is complete, and no other started
  const options = fields && !isIdle ? matchingOptions(textBefore) : [];
  offers.replaceChildren(...options.slice(0, MAX_OPTIONS).map(optionElement));
  selectedIndex = -1;
  setOpen(options.length > 0);
}

function matchingOptions(textBefore) {
  const value = VALUE.exec(textBefore);
  if (value) return valueOptions(value[1].toLowerCase(), value[2]);
  const [, , typed] = WORD.exec(textBefore) ?? [];
  if (typed === undefined || typed.startsWith('"')) return [];
  return fields
    .filter(({ name }) => name.startsWith(typed.toLowerCase()))
    .map(({ name, about }) => ({ text: `${name}:`, about, typed }));
}

function valueOptions(name, typed) {
  const field = fields.find((candidate) => candidate.name === name);
  const query = typed.toLowerCase();
  return (field?.values ?? [])
    .filter(({ value, about }) => [value, about].some((text) => text.toLowerCase().includes(query)))
    .filter(({ value }) => value.toLowerCase() !== query)
    .map(({ value, about }) => ({ text: /[\s,]/.test(value) ? `"${value}"` : value, about, typed }));
}

function optionElement({ text, about, typed }, index) {
  const element = document.createElement("li");
  element.id = `offer-${index}`;
  element.role = "option";
  element.ariaSelected = "false";
  element.dataset.text = text;
  element.dataset.typed = typed.length;
  const name = document.createElement("code");
  name.textContent = text;
  const meaning = document.createElement("span");
  meaning.textContent = about === text ? "" : about;
  element.append(name, meaning);
  return element;
}

function setOpen(isOpen) {
  offers.hidden = !isOpen;
  input.ariaExpanded = String(isOpen);
  input.removeAttribute("aria-activedescendant");
}

function closeList() {
  setOpen(false);
}

function onKeydown(event) {
  if (isComposing(event)) return; // Enter first completes a Japanese word
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && offers.hidden) renderOptions(true);
  if (step && !offers.hidden) {
    event.preventDefault();
    selectedIndex = moveSelection(input, offers.children, selectedIndex, step);
  } else if ((event.key === "Enter" || event.key === "Tab") && !offers.hidden && selectedIndex >= 0) {
    event.preventDefault();
    chooseOption(offers.children[selectedIndex]);
  } else if (event.key === "Escape" && !offers.hidden) {
    event.preventDefault();
    closeList();
  } else if (event.key === "Enter") closeList();
}

function chooseOption({ dataset: { text, typed } }) {
  const end = input.selectionStart;
  const isWhole = !text.endsWith(":");
  const space = isWhole && !/^\s/.test(input.value.slice(end)) ? " " : "";
  replaceRange(input, text + space, end - Number(typed), end);
}

// The selection: the whole page by the box in the header, a range with Shift.

function runBoxes() {
  return [...document.querySelectorAll('.runs input[name="run"]')];
}

function onClick(event) {
  const box = event.target;
  for (const menu of document.querySelectorAll(".pick[open]")) if (!menu.contains(box)) menu.open = false;
  if (box.matches?.("[data-select-page]")) for (const other of runBoxes()) other.checked = box.checked;
  if (!box.matches?.('input[name="run"]')) return;
  const allBoxes = runBoxes();
  const lastIndex = allBoxes.indexOf(lastBox);
  const index = allBoxes.indexOf(box);
  if (event.shiftKey && lastIndex >= 0) {
    for (const other of allBoxes.slice(Math.min(lastIndex, index), Math.max(lastIndex, index) + 1)) other.checked = box.checked;
  }
  lastBox = box;
  updateSelection();
}

function updateSelection() {
  const form = document.getElementById("picked");
  if (!form) return;
  const status = document.getElementById("picked-count");
  status.dataset.empty ??= status.textContent;
  const allBoxes = runBoxes();
  const chosenCount = allBoxes.filter((box) => box.checked).length;
  const isAllRuns = form.elements.all.checked;
  const { one, many, every } = form.dataset;
  status.textContent = isAllRuns ? every : chosenCount === 1 ? one : chosenCount ? many.replace("{}", chosenCount) : status.dataset.empty;
  form.toggleAttribute("data-used", chosenCount > 0 || isAllRuns);
  const page = document.querySelector("[data-select-page]");
  if (page) {
    page.checked = chosenCount > 0 && chosenCount === allBoxes.length;
    page.indeterminate = chosenCount > 0 && !page.checked;
  }
  for (const button of form.querySelectorAll("[data-needs]")) {
    const needs = Number(button.dataset.needs);
    button.disabled = needs === 2 ? isAllRuns || chosenCount !== 2 : !isAllRuns && chosenCount < needs;
  }
}

function closePicks() {
  for (const menu of document.querySelectorAll(".pick[open]")) {
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  }
}

// "/" focuses the filter; J and K move down and up the list.
function onDocumentKeydown(event) {
  if (isComposing(event) || hasModifier(event)) return;
  if (event.key === "Escape") closePicks();
  if (event.key.toLowerCase() === "x") {
    // X selects the row that has the focus.
    const box = event.target.closest(".runs tr")?.querySelector('input[name="run"]');
    if (!box || event.target === box) return;
    box.checked = !box.checked;
    return updateSelection();
  }
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const step = { j: 1, k: -1 }[event.key.toLowerCase()];
  if (step) {
    const links = [...document.querySelectorAll(".runs .ask-cell a")];
    const index = links.indexOf(document.activeElement);
    links[index < 0 ? (step > 0 ? 0 : links.length - 1) : index + step]?.focus();
  }
  if (event.key !== "/") return;
  event.preventDefault();
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
}
