// The filter bar suggests fields and values. The form works without it.

import { isComposing } from "./keys.js";

const input = document.getElementById("q");
const offers = document.getElementById("offers");
const WORD = /(?:^|\s)(-?)([^\s:：]*)$/u;
const VALUE = /(?:^|\s)-?([A-Za-z]+)[:：](?:[^\s,]*,)*([^\s,"]*)$/u;
const MOST = 12;

let known;
let marked = -1;

input.addEventListener("focus", learn);
input.addEventListener("input", () => offer());
// Text being composed isn't submitted; Japanese would be, syllable by syllable.
document.addEventListener("input", (event) => event.isComposing && event.stopPropagation(), true);
input.addEventListener("compositionend", told);
input.addEventListener("click", () => offer());
input.addEventListener("keydown", pressed);
input.addEventListener("blur", close);
offers.addEventListener("mousedown", (event) => {
  event.preventDefault(); // the field keeps the focus
  const option = event.target.closest("[role=option]");
  if (option) take(option);
});
document.addEventListener("keydown", reach);

// Without the server there are no suggestions; the next attempt asks again.
async function learn() {
  if (known) return;
  const answer = await fetch(input.dataset.completions).catch(() => null);
  if (!answer?.ok) return;
  known = (await answer.json()).fields;
  if (document.activeElement === input) offer();
}

function offer(isAsked = !input.value) {
  const before = input.value.slice(0, input.selectionStart);
  const isIdle = !isAsked && /(^|\s)$/.test(before); // a term is complete, and no other started
  const found = known && !isIdle ? candidates(before) : [];
  offers.replaceChildren(...found.slice(0, MOST).map(option));
  marked = -1;
  show(found.length > 0);
}

function candidates(before) {
  const value = VALUE.exec(before);
  if (value) return values(value[1].toLowerCase(), value[2]);
  const [, , typed] = WORD.exec(before) ?? [];
  if (typed === undefined || typed.startsWith('"')) return [];
  return known
    .filter(({ name }) => name.startsWith(typed.toLowerCase()))
    .map(({ name, about }) => ({ text: `${name}:`, about, typed }));
}

function values(name, typed) {
  const field = known.find((each) => each.name === name);
  const like = typed.toLowerCase();
  return (field?.values ?? [])
    .filter(({ value, about }) => [value, about].some((text) => text.toLowerCase().includes(like)))
    .filter(({ value }) => value.toLowerCase() !== like)
    .map(({ value, about }) => ({ text: /[\s,]/.test(value) ? `"${value}"` : value, about, typed }));
}

function option({ text, about, typed }, at) {
  const item = document.createElement("li");
  item.id = `offer-${at}`;
  item.role = "option";
  item.ariaSelected = "false";
  item.dataset.text = text;
  item.dataset.typed = typed.length;
  const name = document.createElement("code");
  name.textContent = text;
  const meaning = document.createElement("span");
  meaning.textContent = about === text ? "" : about;
  item.append(name, meaning);
  return item;
}

function show(isOpen) {
  offers.hidden = !isOpen;
  input.ariaExpanded = String(isOpen);
  input.removeAttribute("aria-activedescendant");
}

function close() {
  show(false);
}

function pressed(event) {
  if (isComposing(event)) return; // Enter first completes a Japanese word
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (move && offers.hidden) offer(true);
  if (move && !offers.hidden) {
    event.preventDefault();
    mark(move);
  } else if ((event.key === "Enter" || event.key === "Tab") && !offers.hidden && marked >= 0) {
    event.preventDefault();
    take(offers.children[marked]);
  } else if (event.key === "Escape" && !offers.hidden) {
    event.preventDefault();
    close();
  } else if (event.key === "Enter") close();
}

function mark(by) {
  const count = offers.children.length;
  offers.children[marked]?.setAttribute("aria-selected", "false");
  marked = marked < 0 && by < 0 ? count - 1 : (marked + by + count) % count;
  const item = offers.children[marked];
  item.ariaSelected = "true";
  item.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", item.id);
}

function take({ dataset: { text, typed } }) {
  const end = input.selectionStart;
  const isWhole = !text.endsWith(":");
  const space = isWhole && !/^\s/.test(input.value.slice(end)) ? " " : "";
  input.setRangeText(text + space, end - Number(typed), end, "end");
  told();
}

function told() {
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

// The selection: the whole page by the box in the header, a range with Shift.
let lastBox;
document.addEventListener("click", pick);
document.addEventListener("change", count);
document.addEventListener("htmx:afterSettle", count);
addEventListener("pageshow", count);
count();

function boxes() {
  return [...document.querySelectorAll('.runs input[name="run"]')];
}

function pick(event) {
  closeMenus(event);
  const box = event.target;
  if (box.matches?.("[data-select-page]")) for (const each of boxes()) each.checked = box.checked;
  if (!box.matches?.('input[name="run"]')) return;
  const all = boxes();
  const [from, to] = [all.indexOf(lastBox), all.indexOf(box)];
  if (event.shiftKey && from >= 0) {
    for (const each of all.slice(Math.min(from, to), Math.max(from, to) + 1)) each.checked = box.checked;
  }
  lastBox = box;
  count();
}

function closeMenus({ target }) {
  for (const menu of document.querySelectorAll(".pick[open]")) if (!menu.contains(target)) menu.open = false;
}

function count() {
  const form = document.getElementById("picked");
  if (!form) return;
  const status = document.getElementById("picked-count");
  status.dataset.empty ??= status.textContent;
  const all = boxes();
  const chosen = all.filter((box) => box.checked).length;
  const isEvery = form.elements.all.checked;
  const { one, many, every } = form.dataset;
  status.textContent = isEvery ? every : chosen === 1 ? one : chosen ? many.replace("{}", chosen) : status.dataset.empty;
  form.toggleAttribute("data-used", chosen > 0 || isEvery);
  const page = document.querySelector("[data-select-page]");
  if (page) [page.checked, page.indeterminate] = [chosen > 0 && chosen === all.length, chosen > 0 && chosen < all.length];
  for (const button of form.querySelectorAll("[data-needs]")) {
    const needs = Number(button.dataset.needs);
    button.disabled = needs === 2 ? isEvery || chosen !== 2 : !isEvery && chosen < needs;
  }
}

// "/" focuses the filter; J and K move down and up the list.
function reach(event) {
  if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") for (const menu of document.querySelectorAll(".pick[open]")) menu.open = false;
  if (event.key.toLowerCase() === "x") return tick(event);
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const by = { j: 1, k: -1 }[event.key.toLowerCase()];
  if (by) walk(by);
  if (event.key !== "/") return;
  event.preventDefault();
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
}

// X selects the row that has the focus.
function tick(event) {
  const box = event.target.closest(".runs tr")?.querySelector('input[name="run"]');
  if (!box || event.target === box) return;
  box.checked = !box.checked;
  count();
}

function walk(by) {
  const links = [...document.querySelectorAll(".runs .ask-cell a")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by];
  next?.focus();
}
