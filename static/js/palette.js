// The command palette: chats, agents, pages and actions by name, from every page.

import { isDark } from "./color_scheme.js";
import { fuzzyScore } from "./fuzzy.js";
import { isComposing } from "./keys.js";
import { registerShortcut, showShortcuts } from "./shortcuts.js";
import { readStored, writeStored } from "./storage.js";

const SEARCH_DELAY_MS = 120; // of silence before chats are searched
const RECENT_KEY = "ashiato-palette-recent";
const MAX_RECENT = 6;
const MAX_SHOWN = { recent: MAX_RECENT, chats: 8, agents: 6, actions: 8, pages: 20 };
const dialog = document.getElementById("palette");
const input = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
const status = dialog?.querySelector("[role=status]");
let items = [];
let chats = [];
let agents;
let pages;
let chosenIndex = 0;
let loadTimer;
let requestCount = 0;

export function startPalette() {
  if (!dialog) return;
  registerShortcut("mod+k", togglePalette);
  registerShortcut("mod+shift+o", () => location.assign(dialog.querySelector('[data-id="new"]').dataset.href));
  document.addEventListener("click", onClick);
  input.addEventListener("input", onInput);
  input.addEventListener("keydown", onKeydown);
  list.addEventListener("pointermove", onPointermove);
}

function openPalette() {
  if (dialog.open) return;
  input.value = "";
  dialog.showModal();
  renderList();
  loadResults("");
}

function togglePalette() {
  if (dialog.open) dialog.close();
  else if (document.querySelector("dialog:modal")) return false;
  else openPalette();
}

function onClick({ target }) {
  if (target.closest?.("[data-palette]")) openPalette();
  if (target === dialog || target.closest?.("[data-close-palette]")) dialog.close();
  const option = target.closest?.("#palette [role=option]");
  if (option) runItem(items[Number(option.dataset.index)]);
}

function onPointermove({ target }) {
  const option = target.closest("[role=option]");
  if (option && Number(option.dataset.index) !== chosenIndex) chooseOption(Number(option.dataset.index));
}

function onInput() {
  renderList();
  clearTimeout(loadTimer);
  loadTimer = setTimeout(() => loadResults(input.value.trim()), SEARCH_DELAY_MS);
}

function onKeydown(event) {
  if (isComposing(event)) return;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps) chooseOption((chosenIndex + steps[event.key] + items.length) % Math.max(items.length, 1));
  else if (event.key === "Home" && !input.value) chooseOption(0);
  else if (event.key === "End" && !input.value) chooseOption(items.length - 1);
  else if (event.key === "Enter" && items[chosenIndex]) runItem(items[chosenIndex]);
  else return;
  event.preventDefault();
}

// A slow answer to an earlier question is dropped.
async function loadResults(query) {
  const request = ++requestCount;
  const agentsParameter = agents ? "" : "&agents=1";
  try {
    const response = await fetch(`${dialog.dataset.source}?q=${encodeURIComponent(query)}${agentsParameter}`, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(8000),
    });
    if (response.redirected) return location.reload(); // signed out meanwhile
    if (!response.ok) throw new Error(response.status);
    const results = await response.json();
    agents ??= results.agents;
    pages ??= results.pages;
    if (request !== requestCount) return;
    chats = results.chats;
    renderList();
  } catch {
    if (request === requestCount) status.textContent = dialog.dataset.failed;
  }
}

function renderList() {
  const query = input.value.trim();
  const chosenId = items[chosenIndex]?.id;
  const groups = query ? matchingGroups(query) : startGroups();
  items = groups.flatMap(([, group]) => group);
  list.replaceChildren(...groups.filter(([, group]) => group.length).map(groupElement));
  status.textContent = items.length ? dialog.dataset.count.replace("{}", items.length) : dialog.dataset.none.replace("{}", query);
  status.classList.toggle("visually-hidden", items.length > 0);
  const index = query ? 0 : items.findIndex((item) => item.id === chosenId);
  chooseOption(Math.max(index, 0));
}

function startGroups() {
  const allItems = [...commandItems(), ...(agents ?? []).map(agentItem), ...chats.map(chatItem)];
  const recent = recentIds().map((id) => allItems.find((item) => item.id === id)).filter(Boolean);
  const others = (group) => allItems.filter((item) => item.group === group && !recent.includes(item));
  return limitGroups([
    ["recent", recent],
    ["actions", others("actions")],
    ["chats", others("chats").slice(0, 5)],
    ["agents", others("agents")],
    ["pages", others("pages")],
  ]);
}

// Chats were matched by the server, which also searches their text.
function matchingGroups(query) {
  const matchesIn = (group) =>
    [...commandItems(), ...(agents ?? []).map(agentItem)]
      .filter((item) => item.group === group)
      .map((item) => [fuzzyScore(query, item.label, item.words), item])
      .filter(([points]) => points)
      .sort(([a], [b]) => b - a);
  const groups = [["actions", matchesIn("actions")], ["agents", matchesIn("agents")], ["pages", matchesIn("pages")]];
  const matchingChats = chats.map((chat) => [fuzzyScore(query, chat.label) || 10, chatItem(chat)]).sort(([a], [b]) => b - a);
  groups.push(["chats", matchingChats]);
  const best = ([, group]) => group[0]?.[0] ?? 0;
  groups.sort((a, b) => best(b) - best(a));
  return limitGroups(groups.map(([name, group]) => [name, group.map(([, item]) => item)]));
}

function limitGroups(groups) {
  return groups.map(([name, group]) => [name, group.slice(0, MAX_SHOWN[name])]);
}

// Controls on the page can be commands, too: those with data-command and an id.
function commandItems() {
  const ownCommands = [...dialog.querySelectorAll(".palette-commands > li")].map((line) => ({
    ...line.dataset,
    label: line.textContent,
  }));
  const pageCommands = [...document.querySelectorAll("[data-command][data-command-id]:not([hidden], :disabled)")].map((control) => ({
    id: `here-${control.dataset.commandId}`,
    group: "actions",
    label: control.dataset.command,
    words: control.dataset.words ?? "",
    icon: control.dataset.commandIcon ?? "forward",
    control,
  }));
  const knownUrls = new Set(ownCommands.map(({ href }) => href));
  const otherPages = (pages ?? []).filter(({ href }) => !knownUrls.has(href)).map((page) => ({ ...page, group: "pages" }));
  return [...pageCommands, ...ownCommands, ...otherPages];
}

const agentItem = (agent) => ({ ...agent, group: "agents", icon: "thought" });
const chatItem = (chat) => ({ ...chat, group: "chats", icon: "answer" });

function groupElement([name, group]) {
  const element = createNode("div", { role: "group", ariaLabel: dialog.dataset[name] });
  element.append(createNode("div", { className: "palette-heading", ariaHidden: "true" }, dialog.dataset[name]));
  element.append(...group.map(optionElement));
  return element;
}

function optionElement(item) {
  const index = items.indexOf(item);
  const option = createNode("div", { role: "option", id: `palette-option-${index}`, className: "palette-option" });
  option.dataset.index = index;
  option.innerHTML = '<svg class="icon" aria-hidden="true"><use></use></svg>';
  option.querySelector("use").setAttribute("href", `#i-${item.icon}`);
  option.append(createNode("span", { className: "palette-label" }, item.label));
  if (item.hint) option.append(createNode("span", { className: "palette-hint" }, item.hint));
  if (item.keys) option.append(...item.keys.split(" ").map((key) => createNode("kbd", {}, key)));
  return option;
}

function createNode(tag, properties, text = "") {
  const element = Object.assign(document.createElement(tag), { textContent: text, ...properties });
  if (properties.role) element.setAttribute("role", properties.role);
  return element;
}

function chooseOption(index) {
  chosenIndex = index;
  for (const option of list.querySelectorAll("[role=option]")) {
    const isChosen = Number(option.dataset.index) === index;
    option.setAttribute("aria-selected", String(isChosen));
    if (isChosen) option.scrollIntoView({ block: "nearest" });
  }
  if (items.length) input.setAttribute("aria-activedescendant", `palette-option-${index}`);
  else input.removeAttribute("aria-activedescendant");
}

function runItem(item) {
  const recent = [item.id, ...recentIds().filter((id) => id !== item.id)];
  writeStored(RECENT_KEY, JSON.stringify(recent.slice(0, MAX_RECENT)));
  dialog.close();
  if (item.control) item.control.click();
  else if (item.do) ACTIONS[item.do]();
  else location.assign(item.href);
}

const ACTIONS = {
  shortcuts: showShortcuts,
  theme: toggleTheme,
  "sign-out": () => document.querySelector("form.account").requestSubmit(),
};

function toggleTheme() {
  const next = document.querySelector(`input[name=theme][value=${isDark() ? "light" : "dark"}]`);
  next.checked = true;
  next.dispatchEvent(new Event("change", { bubbles: true }));
}

// Only ids, because titles of chats are private and the computer may not be.
function recentIds() {
  try {
    return JSON.parse(readStored(RECENT_KEY) ?? "[]").slice(0, MAX_RECENT);
  } catch {
    return []; // it holds something else
  }
}
