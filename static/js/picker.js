// The agent and the model that answer next: one button, and one panel with both.

import { isComposing } from "./keys.js";
import { readStored, writeStored } from "./storage.js";
import { hasAllWords, searchWords } from "./text_search.js";

const form = document.getElementById("ask");
const session = document.getElementById("main").dataset.session;
const button = document.getElementById("agent-button");
const panel = document.getElementById("agent-panel");
const agents = form.elements.agent; // a hidden field of a chat with one agent, or none
const models = form.elements.model;
const descriptions = [...form.querySelectorAll(".model[data-agent]")];
// What was chosen and not sent yet stays when the page is reloaded.
const AGENT_KEY = `ashiato-agent-${session ?? "new"}`;
const OPTIONS_KEY = `ashiato-options-${session ?? "new"}`;
const FIELDS = ["model", "effort", "temperature"];

export function startPicker() {
  if (!button) return;
  panel.hidden = true;
  if (agents?.options) createList(agents, "agent-options");
  if (models) createList(models, "model-options", close);
  button.addEventListener("click", () => (panel.hidden ? open() : close()));
  button.addEventListener("keydown", (event) => {
    if (isComposing(event) || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    open();
  });
  panel.addEventListener("keydown", onKeydown);
  panel.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !panel.contains(relatedTarget) && relatedTarget !== button) close(false);
  });
  panel.addEventListener("invalid", open, true); // a field that can't be seen can't say what is wrong with it
  document.addEventListener("pointerdown", ({ target }) => {
    if (!panel.contains(target) && !button.contains(target)) close(false);
  });
  document.addEventListener("submit", ({ target }) => {
    if (target !== form) return;
    sessionStorage.removeItem(AGENT_KEY);
    sessionStorage.removeItem(OPTIONS_KEY);
  });
  agents?.addEventListener?.("change", onAgentChange);
  models?.addEventListener("change", onModelChange);
  panel.addEventListener("input", saveOptions);
  panel.addEventListener("change", saveOptions);
  panel.querySelector(".picker-default button")?.addEventListener("click", saveDefaultAgent);
  restoreAgent();
  restoreOptions();
  update();
}

function open() {
  if (!panel.hidden) return;
  panel.hidden = false;
  button.ariaExpanded = "true";
  panel.style.insetInlineStart = `${Math.max(0, Math.min(button.offsetLeft, form.clientWidth - panel.offsetWidth))}px`;
  for (const input of panel.querySelectorAll("[role=combobox]")) {
    input.value = "";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const field = [...panel.querySelectorAll("input:not(:disabled)")].find((input) => input.checkVisibility());
  // A phone's keyboard would cover the list.
  (matchMedia("(pointer: coarse)").matches ? panel : (field ?? panel)).focus({ preventScroll: true });
}

function close(returnsFocus = true) {
  if (panel.hidden) return;
  panel.hidden = true;
  button.ariaExpanded = "false";
  if (returnsFocus) button.focus({ preventScroll: true });
}

function onKeydown(event) {
  if (isComposing(event)) return;
  const isTyped = event.key === "Enter" && event.target.matches("[name=temperature]");
  if (event.key !== "Escape" && !isTyped) return;
  event.preventDefault(); // Enter would send the message,
  event.stopPropagation(); // and Escape would stop the run
  close();
}

// A list with a search field in place of a select, which stays the form's field.
function createList(select, listId, onPick = () => {}) {
  select.tabIndex = -1;
  select.closest("label").ariaHidden = "true";
  const list = document.getElementById(listId);
  const input = panel.querySelector(`[aria-controls="${listId}"]`);
  const none = list.parentElement.querySelector(".picker-none");
  const options = [...list.children];
  let active = null;

  input.addEventListener("input", filter);
  input.addEventListener("keydown", onListKeydown);
  list.addEventListener("click", ({ target }) => pick(target.closest("[role=option]")));
  list.addEventListener("pointermove", ({ target }) => setActive(target.closest("[role=option]"), false));
  select.addEventListener("change", () => {
    for (const option of options) option.ariaSelected = String(option.dataset.value === select.value);
  });

  function visibleOptions() {
    return options.filter((option) => !option.hidden);
  }

  function filter() {
    const words = searchWords(input.value);
    for (const option of options) option.hidden = !hasAllWords(option.dataset.search, words);
    const [first] = visibleOptions();
    none.hidden = Boolean(first);
    const chosen = options.find((option) => option.dataset.value === select.value);
    setActive((input.value ? null : chosen) ?? first ?? null);
  }

  function onListKeydown(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isComposing(event) || (!step && event.key !== "Enter")) return;
    event.preventDefault();
    const visible = visibleOptions();
    if (step) return setActive(visible[(visible.indexOf(active) + step + visible.length) % visible.length]);
    if (!active) return;
    pick(active);
    close(false);
    form.elements.text.focus(); // the message is next
  }

  function setActive(option, scrolls = true) {
    if (option === undefined || (option === active && !scrolls)) return;
    active?.removeAttribute("data-active");
    active = option;
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.dataset.active = "";
    input.setAttribute("aria-activedescendant", option.id);
    if (scrolls) option.scrollIntoView({ block: "nearest" });
  }

  function pick(option) {
    if (!option) return;
    chooseValue(select, option.dataset.value);
    onPick();
  }
}

function chooseValue(select, value) {
  if (select.value === value) return;
  select.value = value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
}

function chosenAgent() {
  return descriptions.find(({ dataset }) => dataset.agent === agents?.value) ?? descriptions[0];
}

// Shows what is chosen, and what can be.
function update() {
  const agent = chosenAgent();
  const { agent: name, label } = agent.dataset;
  const mayChoose = Boolean(models) && "allowsModel" in agent.dataset;
  const option = mayChoose && models.value
    ? panel.querySelector(`#model-options [data-value="${CSS.escape(models.value)}"]`)
    : null;
  const chosen = (option ?? agent).dataset;
  const mayTune = "allowsParameters" in agent.dataset;
  const maxTemperature = Number(chosen.maxTemperature);
  if (models) models.disabled = panel.querySelector(".model-list").hidden = !mayChoose;
  setEnabled(tuningPart("effort"), mayTune && "effort" in chosen);
  // While a model reasons it has no temperature.
  const isReasoning = "effort" in chosen && form.elements.effort?.value;
  setEnabled(tuningPart("temperature"), mayTune && maxTemperature > 0 && !isReasoning);
  if (form.elements.temperature && maxTemperature) form.elements.temperature.max = chosen.maxTemperature;
  const noneNote = panel.querySelector(".model-none");
  if (noneNote) noneNote.hidden = !mayTune || "effort" in chosen || maxTemperature > 0;
  for (const description of descriptions) description.hidden = true;

  const fixed = panel.querySelector(".model-fixed");
  fixed.hidden = mayChoose;
  fixed.querySelector("span").textContent = fixed.dataset.text.replace("{}", name);
  fixed.querySelector("strong").textContent = label;
  const title = document.getElementById("model-title");
  if (title) title.textContent = title.dataset.text.replace("{}", name);
  const ownName = panel.querySelector(".own-model");
  if (ownName) ownName.textContent = label;

  const avatar = panel.querySelector(`#agent-options [data-value="${CSS.escape(name)}"] .avatar`);
  if (avatar) button.querySelector(".avatar")?.replaceWith(avatar.cloneNode(true));
  button.querySelector(".picked").textContent = name;
  button.querySelector(".picked-model").textContent = option ? models.value : label;
  button.querySelector(".picked-tuning").textContent = tuningText();
  updateDefault();
}

function tuningPart(name) {
  return panel.querySelector(`[data-part="${name}"]`);
}

function setEnabled(fieldset, isOn) {
  if (!fieldset) return;
  fieldset.disabled = !isOn;
  fieldset.hidden = !isOn;
}

function tuningText() {
  const effort = tuningPart("effort");
  if (effort && !effort.disabled && form.elements.effort.value)
    return effort.querySelector(":checked").parentElement.textContent.trim();
  const temperature = tuningPart("temperature");
  return temperature && !temperature.disabled ? form.elements.temperature.value : "";
}

// Another agent in one chat changes nothing else; new chats start with the default.
function onAgentChange() {
  sessionStorage.setItem(AGENT_KEY, agents.value);
  for (const examples of document.querySelectorAll("[data-examples-of]"))
    examples.hidden = examples.dataset.examplesOf !== agents.value;
  if (!session) useSavedModel();
  update();
}

const modelKey = () => `ashiato-model-${form.dataset.user}-${chosenAgent().dataset.agent}`;

function onModelChange() {
  if (!session) writeStored(modelKey(), models.value);
  update();
}

function useSavedModel() {
  if (!models) return;
  const saved = readStored(modelKey()) ?? "";
  const isOffered = [...models.options].some(({ value }) => value === saved);
  chooseValue(models, isOffered ? saved : "");
}

function saveOptions() {
  const values = Object.fromEntries(FIELDS.map((name) => [name, form.elements[name]?.value ?? ""]));
  sessionStorage.setItem(OPTIONS_KEY, JSON.stringify(values));
  update();
}

function restoreAgent() {
  const saved = sessionStorage.getItem(AGENT_KEY);
  if (!agents?.options || new URLSearchParams(location.search).has("agent")) return;
  if ([...agents.options].some(({ value }) => value === saved)) chooseValue(agents, saved);
}

function restoreOptions() {
  const isLinked = new URLSearchParams(location.search).has("model");
  const saved = isLinked ? null : JSON.parse(sessionStorage.getItem(OPTIONS_KEY) ?? "null");
  if (!saved && !session && !isLinked) useSavedModel();
  for (const name of FIELDS) {
    const field = form.elements[name];
    if (field && saved && name in saved) field.value = saved[name];
  }
  if (!models) return;
  if (models.selectedIndex < 0) models.value = ""; // the model is gone
  models.dispatchEvent(new Event("change"));
}

function updateDefault() {
  const note = panel.querySelector(".picker-default");
  if (!note) return;
  const isDefault = note.dataset.default === agents.value;
  note.querySelector("span").hidden = !isDefault;
  note.querySelector("button").hidden = isDefault;
}

async function saveDefaultAgent() {
  const note = panel.querySelector(".picker-default");
  const body = new URLSearchParams({ agent: agents.value });
  const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  const response = await fetch(note.dataset.url, { method: "POST", body, headers }).catch(() => null);
  if (response?.ok) note.dataset.default = agents.value;
  updateDefault();
}
