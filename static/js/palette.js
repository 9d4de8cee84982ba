// The command palette: chats, agents, pages and actions by name, from every page.

import { score } from "./fuzzy.js";
import { isComposing } from "./keys.js";
import { register, showList } from "./shortcuts.js";

const PAUSE = 120; // ms of silence before chats are searched
const RECENT = "ashiato-palette-recent";
const MAX_RECENT = 6;
const MAX_SHOWN = { recent: MAX_RECENT, chats: 8, agents: 6, actions: 8, pages: 20 };
const dialog = document.getElementById("palette");
const input = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
const status = dialog?.querySelector("[role=status]");
let chats = [];
let agents;
let pages;
let chosen = 0;
let soon;
let asked = 0;

export function start() {
  if (!dialog) return;
  register("mod+k", toggle);
  register("mod+shift+o", () => location.assign(dialog.querySelector('[data-id="new"]').dataset.href));
  document.addEventListener("click", clicked);
  input.addEventListener("input", typed);
  input.addEventListener("keydown", pressed);
  list.addEventListener("pointermove", pointed);
}

export function open() {
  if (dialog.open) return;
  input.value = "";
  dialog.showModal();
  render();
  load("");
}

function toggle() {
  if (dialog.open) dialog.close();
  else if (document.querySelector("dialog:modal")) return false;
  else open();
}

function clicked({ target }) {
  if (target.closest?.("[data-palette]")) open();
  if (target === dialog || target.closest?.("[data-close-palette]")) dialog.close();
  const option = target.closest?.("#palette [role=option]");
  if (option) run(items[Number(option.dataset.at)]);
}

function pointed({ target }) {
  const option = target.closest("[role=option]");
  if (option && Number(option.dataset.at) !== chosen) choose(Number(option.dataset.at));
}

function typed() {
  render();
  clearTimeout(soon);
  soon = setTimeout(() => load(input.value.trim()), PAUSE);
}

function pressed(event) {
  if (isComposing(event)) return;
  const moves = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in moves) choose((chosen + moves[event.key] + items.length) % Math.max(items.length, 1));
  else if (event.key === "Home" && !input.value) choose(0);
  else if (event.key === "End" && !input.value) choose(items.length - 1);
  else if (event.key === "Enter" && items[chosen]) run(items[chosen]);
  else return;
  event.preventDefault();
}

// A slow answer to an earlier question is dropped.
async function load(query) {
  const turn = ++asked;
  const wanted = agents ? "" : "&agents=1";
  try {
    const response = await fetch(`${dialog.dataset.source}?q=${encodeURIComponent(query)}${wanted}`, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(8000),
    });
    if (response.redirected) return location.reload(); // signed out meanwhile
    if (!response.ok) throw new Error(response.status);
    const found = await response.json();
    agents ??= found.agents;
    pages ??= found.pages;
    if (turn !== asked) return;
    chats = found.chats;
    render();
  } catch {
    if (turn === asked) status.textContent = dialog.dataset.failed;
  }
}

let items = [];

function render() {
  const query = input.value.trim();
  const kept = items[chosen]?.id;
  const groups = query ? matches(query) : startPage();
  items = groups.flatMap(([, group]) => group);
  list.replaceChildren(...groups.filter(([, group]) => group.length).map(groupElement));
  status.textContent = items.length ? dialog.dataset.count.replace("{}", items.length) : dialog.dataset.none.replace("{}", query);
  status.classList.toggle("visually-hidden", items.length > 0);
  const at = query ? 0 : items.findIndex((item) => item.id === kept);
  choose(Math.max(at, 0));
}

function startPage() {
  const all = [...commands(), ...(agents ?? []).map(asAgent), ...chats.map(asChat)];
  const recent = recents().map((id) => all.find((item) => item.id === id)).filter(Boolean);
  const rest = (group) => all.filter((item) => item.group === group && !recent.includes(item));
  return cut([["recent", recent], ["actions", rest("actions")], ["chats", rest("chats").slice(0, 5)], ["agents", rest("agents")], ["pages", rest("pages")]]);
}

// Chats were matched by the server, which also searches their text.
function matches(query) {
  const by = (group) =>
    [...commands(), ...(agents ?? []).map(asAgent)]
      .filter((item) => item.group === group)
      .map((item) => [score(query, item.label, item.words), item])
      .filter(([points]) => points)
      .sort(([one], [other]) => other - one);
  const groups = [["actions", by("actions")], ["agents", by("agents")], ["pages", by("pages")]];
  const titled = chats.map((chat) => [score(query, chat.label) || 10, asChat(chat)]).sort(([one], [other]) => other - one);
  groups.push(["chats", titled]);
  const best = ([, group]) => group[0]?.[0] ?? 0;
  groups.sort((one, other) => best(other) - best(one));
  return cut(groups.map(([name, group]) => [name, group.map(([, item]) => item)]));
}

function cut(groups) {
  return groups.map(([name, group]) => [name, group.slice(0, MAX_SHOWN[name])]);
}

// Controls on the page can be commands, too: those with data-command and an id.
function commands() {
  const own = [...dialog.querySelectorAll(".palette-commands > li")].map((line) => ({
    ...line.dataset,
    label: line.textContent,
  }));
  const here = [...document.querySelectorAll("[data-command][data-command-id]:not([hidden], :disabled)")].map((control) => ({
    id: `here-${control.dataset.commandId}`,
    group: "actions",
    label: control.dataset.command,
    words: control.dataset.words ?? "",
    icon: control.dataset.commandIcon ?? "forward",
    control,
  }));
  const known = new Set(own.map(({ href }) => href));
  const others = (pages ?? []).filter(({ href }) => !known.has(href)).map((page) => ({ ...page, group: "pages" }));
  return [...here, ...own, ...others];
}

const asAgent = (agent) => ({ ...agent, group: "agents", icon: "thought" });
const asChat = (chat) => ({ ...chat, group: "chats", icon: "answer" });

function groupElement([name, group]) {
  const element = node("div", { role: "group", ariaLabel: dialog.dataset[name] });
  element.append(node("div", { className: "palette-heading", ariaHidden: "true" }, dialog.dataset[name]));
  element.append(...group.map(optionElement));
  return element;
}

function optionElement(item) {
  const at = items.indexOf(item);
  const option = node("div", { role: "option", id: `palette-option-${at}`, className: "palette-option" });
  option.dataset.at = at;
  option.append(icon(item.icon), node("span", { className: "palette-label" }, item.label));
  if (item.hint) option.append(node("span", { className: "palette-hint" }, item.hint));
  if (item.keys) option.append(...item.keys.split(" ").map((key) => node("kbd", {}, key)));
  return option;
}

function node(tag, about, text = "") {
  const element = Object.assign(document.createElement(tag), { textContent: text, ...about });
  if (about.role) element.setAttribute("role", about.role);
  return element;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

function choose(at) {
  chosen = at;
  for (const option of list.querySelectorAll("[role=option]")) {
    const is = Number(option.dataset.at) === at;
    option.setAttribute("aria-selected", String(is));
    if (is) option.scrollIntoView({ block: "nearest" });
  }
  if (items.length) input.setAttribute("aria-activedescendant", `palette-option-${at}`);
  else input.removeAttribute("aria-activedescendant");
}

function run(item) {
  remember(item.id);
  dialog.close();
  if (item.control) item.control.click();
  else if (item.do) DO[item.do]();
  else location.assign(item.href);
}

const DO = {
  shortcuts: showList,
  theme: toggleTheme,
  "sign-out": () => document.querySelector("form.account").requestSubmit(),
};

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme === "dark" || (root.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = document.querySelector(`input[name=theme][value=${isDark ? "light" : "dark"}]`);
  next.checked = true;
  next.dispatchEvent(new Event("change", { bubbles: true }));
}

// Only ids, because titles of chats are private and the computer may not be.
function recents() {
  try {
    return JSON.parse(localStorage.getItem(RECENT) ?? "[]").slice(0, MAX_RECENT);
  } catch {
    return [];
  }
}

function remember(id) {
  try {
    localStorage.setItem(RECENT, JSON.stringify([id, ...recents().filter((other) => other !== id)].slice(0, MAX_RECENT)));
  } catch {
    // Storage is disabled or full: nothing is recent.
  }
}
