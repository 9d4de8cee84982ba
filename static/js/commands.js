// Suggestions while typing: "/" lists commands and prompts, "@" agents.

import { isComposing } from "./keys.js";
import { moveSelection } from "./listbox.js";
import { mentionableAgents, mentionedAgent, showMention } from "./mentions.js";
import { usePrompt } from "./prompts.js";
import { replaceRange } from "./text_fields.js";
import { fold } from "./text_search.js";

const text = document.getElementById("text");
const offers = document.getElementById("offers");
const commands = document.getElementById("commands");
const WORKFLOW = "/workflow";
const FRESH_MS = 30_000; // prompts can be saved in another tab
const MAX_HEIGHT = 288; // px
const MIN_HEIGHT = 96;
const GAP = 16;

let loaded = { time: 0, workflows: [], prompts: [] };
let shownOptions = [];
let selectedIndex = -1;

export function startCommands() {
  text.addEventListener("input", onInput);
  text.addEventListener("compositionend", onInput); // Safari's last input is still composed
  text.addEventListener("keydown", onKeydown, true); // before Enter sends and Escape stops
  text.addEventListener("blur", closeList);
  offers.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const option = event.target.closest("[role=option]");
    if (option) chooseOption(shownOptions[[...offers.children].indexOf(option)]);
  });
  showMention("");
}

async function onInput(event) {
  if (event.isComposing && event.type === "input") return;
  const typed = textBeforeCaret();
  showMention(typed.startsWith("@") ? "list" : "");
  if (!/^[/@]/.test(typed)) return closeList();
  if (typed.startsWith("/")) await loadLibrary();
  if (textBeforeCaret() !== typed) return; // the text changed meanwhile
  renderOptions(typed.startsWith("@") ? agentOptions(typed.slice(1)) : commandOptions(typed));
}

// Returns what is before the caret, with the signs that Japanese keyboards type.
function textBeforeCaret() {
  const before = text.value.slice(0, text.selectionStart);
  return before.includes("\n") ? "" : before.replace(/^／/, "/").replace(/^＠/, "@");
}

function commandOptions(typed) {
  if (typed.startsWith(`${WORKFLOW} `)) return workflowOptions(typed.slice(WORKFLOW.length + 1).replace(/^["「]/, ""));
  if (/\s/.test(typed)) return [];
  const query = fold(typed.slice(1));
  return [...pageOptions(), ...promptOptions(), ...workflowOptions("")]
    .filter(({ name, about }) => name.includes(query) || (query && fold(about).includes(query)))
    .sort((a, b) => !a.name.startsWith(query) - !b.name.startsWith(query));
}

// Each command presses what the page already has; what isn't there isn't offered.
function pageOptions() {
  return [...commands.children].flatMap((item) => {
    const { command: name, press, insert, href } = item.dataset;
    const control = press ? [...document.querySelectorAll(press)].at(-1) : null;
    if (press && !control) return [];
    const act = () => {
      replaceTyped(insert ?? "");
      if (href) location.assign(href);
      control?.click();
    };
    return [{ name, label: `/${name}`, about: item.textContent, act }];
  });
}

function promptOptions() {
  return loaded.prompts.map(({ pk, name, title }) => ({
    name: fold(name),
    label: `/${name}`,
    about: title,
    act: () => {
      const end = text.selectionStart; // the form takes the focus, and the caret with it
      usePrompt(pk, (replacement) => replaceTyped(replacement, end));
    },
  }));
}

function workflowOptions(typed) {
  if (typed.includes("=")) return [];
  const query = typed.toLowerCase();
  const matches = loaded.workflows.filter(({ name }) => name.toLowerCase().includes(query));
  if (matches.some(({ name }) => name.toLowerCase() === query)) return [];
  return matches.map(({ name, about }) => ({
    name: fold(`workflow ${name}`),
    label: `${WORKFLOW} ${name}`,
    about,
    act: () => replaceTyped(`${WORKFLOW} ${/[\s="'「」\\]/.test(name) ? JSON.stringify(name) : name} `),
  }));
}

function agentOptions(typed) {
  if (mentionedAgent(`@${typed}`)) return [];
  const query = fold(typed).trim();
  const chosen = text.form.elements.agent?.value;
  return mentionableAgents()
    .filter(({ name }) => name !== chosen && fold(name).includes(query))
    .map(({ name, about }) => ({ label: `@${name}`, about, act: () => replaceTyped(`@${name} `) }));
}

// Without the server there are fewer suggestions; the next attempt asks again.
async function loadLibrary() {
  if (Date.now() - loaded.time < FRESH_MS) return;
  const [completions, library] = await Promise.all([text.dataset.completions, text.dataset.prompts].map(fetchJson));
  if (completions && library) loaded = { time: Date.now(), ...completions, ...library };
}

async function fetchJson(url) {
  const response = await fetch(url).catch(() => null);
  return response?.ok ? response.json() : null;
}

function renderOptions(options) {
  shownOptions = options;
  offers.replaceChildren(...options.map(optionElement));
  offers.hidden = !options.length;
  offers.scrollTop = 0;
  selectedIndex = -1;
  text.removeAttribute("aria-activedescendant");
  if (!options.length) return;
  // Above the composer, unless there is more room below, as on a new chat.
  const { top, bottom } = offers.parentElement.getBoundingClientRect();
  const above = top - GAP;
  const below = (visualViewport?.height ?? innerHeight) - bottom - GAP;
  offers.toggleAttribute("data-below", below > above);
  offers.style.maxHeight = `${Math.max(MIN_HEIGHT, Math.min(MAX_HEIGHT, Math.max(above, below)))}px`;
  selectedIndex = moveSelection(text, offers.children, selectedIndex, 1);
}

function optionElement({ label, about }, index) {
  const element = document.createElement("li");
  element.id = `offer-${index}`;
  element.role = "option";
  element.ariaSelected = "false";
  const name = document.createElement("strong");
  name.textContent = label;
  const meaning = document.createElement("span");
  meaning.textContent = about;
  element.append(name, meaning);
  return element;
}

function onKeydown(event) {
  if (isComposing(event) || offers.hidden) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isTaken = selectedIndex >= 0 && !event.shiftKey && ["Enter", "Tab"].includes(event.key);
  if (!step && !isTaken && event.key !== "Escape") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (step) selectedIndex = moveSelection(text, offers.children, selectedIndex, step);
  else if (isTaken) chooseOption(shownOptions[selectedIndex]);
  else closeList();
}

function chooseOption(option) {
  closeList();
  option.act();
}

// Replaces what was typed; what follows the caret stays.
function replaceTyped(replacement, end = text.selectionStart) {
  replaceRange(text, replacement, 0, end);
}

function closeList() {
  if (shownOptions.length) renderOptions([]);
}
