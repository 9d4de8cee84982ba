// The model of a chat, its effort and its temperature, where the agent allows to choose them.

import { isComposing } from "./keys.js";
import { createPicker, positionPanel } from "./picker.js";

const form = document.getElementById("ask");
const session = document.getElementById("main").dataset.session;
const storageKey = `ashiato-options-${session ?? "new"}`;
const button = document.getElementById("model-button");
const panel = document.getElementById("model-panel");
const FIELDS = ["model", "effort", "temperature"];

export function startModelPicker() {
  if (!button) return;
  const models = form.elements.model;
  const { close, open } = models ? createPicker(models, "model", { stays: true }) : createPanelToggle();
  restoreOptions();
  form.elements.agent?.addEventListener("change", showModel);
  panel.addEventListener("change", onChange);
  panel.addEventListener("input", onChange);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.name !== "temperature" || isComposing(event)) return;
    event.preventDefault(); // it would send the message
    close();
  });
  // A field that can't be seen can't say what is wrong with it.
  panel.addEventListener("invalid", open, true);
  document.addEventListener("submit", ({ target }) => target === form && sessionStorage.removeItem(storageKey));
  showModel();
}

function showModel() {
  const descriptions = [...form.querySelectorAll(".model[data-agent]")];
  const agent = descriptions.find(({ dataset }) => dataset.agent === form.elements.agent?.value) ?? descriptions[0];
  const models = form.elements.model;
  const mayChoose = Boolean(models) && "allowsModel" in agent.dataset;
  const option = mayChoose && models.value
    ? panel.querySelector(`#model-options [data-value="${CSS.escape(models.value)}"]`)
    : null;
  const chosen = (option ?? agent).dataset;
  const mayTune = "allowsParameters" in agent.dataset;
  const effort = fieldValue("effort");
  const maxTemperature = Number(chosen.maxTemperature);
  if (models) models.disabled = panel.querySelector(".model-list").hidden = !mayChoose;
  setEnabled(tuningPart("effort"), mayTune && "effort" in chosen);
  // While a model reasons it has no temperature.
  setEnabled(tuningPart("temperature"), mayTune && maxTemperature > 0 && !("effort" in chosen && effort));
  if (form.elements.temperature && maxTemperature) form.elements.temperature.max = chosen.maxTemperature;
  const noneNote = panel.querySelector(".model-none");
  if (noneNote) noneNote.hidden = !mayTune || "effort" in chosen || maxTemperature > 0;
  button.hidden = !mayChoose && (!mayTune || !("effort" in chosen || maxTemperature > 0));
  for (const description of descriptions)
    description.hidden = description !== agent || !button.hidden;
  button.querySelector(".picked").textContent = option ? models.value : agent.dataset.label;
  button.querySelector(".picked-tuning").textContent = tuningText();
  const ownName = panel.querySelector(".own-model");
  if (ownName) ownName.textContent = agent.dataset.label;
}

function tuningPart(name) {
  return panel.querySelector(`[data-part="${name}"]`);
}

function setEnabled(fieldset, isOn) {
  if (!fieldset) return;
  fieldset.disabled = !isOn;
  fieldset.hidden = !isOn;
}

function fieldValue(name) {
  const field = form.elements[name];
  return field?.value ?? "";
}

function tuningText() {
  const effort = tuningPart("effort");
  if (effort && !effort.disabled && fieldValue("effort"))
    return effort.querySelector(":checked").parentElement.textContent.trim();
  const temperature = tuningPart("temperature");
  return temperature && !temperature.disabled ? fieldValue("temperature") : "";
}

function onChange() {
  sessionStorage.setItem(storageKey, JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, fieldValue(name)]))));
  showModel();
}

// What was chosen and not sent yet stays when the page is reloaded.
function restoreOptions() {
  const savedOptions = JSON.parse(sessionStorage.getItem(storageKey) ?? "{}");
  for (const name of FIELDS) {
    const field = form.elements[name];
    if (field && name in savedOptions) field.value = savedOptions[name];
  }
  const models = form.elements.model;
  if (models && models.selectedIndex < 0) models.value = ""; // the model is gone
  models?.dispatchEvent(new Event("change"));
}

// Without a list of models there is nothing to search, only a panel to open.
function createPanelToggle() {
  const open = () => {
    panel.hidden = false;
    positionPanel(panel, button);
    button.ariaExpanded = "true";
    panel.focus({ preventScroll: true });
  };
  const close = () => {
    if (panel.hidden) return;
    panel.hidden = true;
    button.ariaExpanded = "false";
    button.focus({ preventScroll: true });
  };
  panel.hidden = true;
  panel.dataset.ready = "";
  button.addEventListener("click", () => (panel.hidden ? open() : close()));
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || isComposing(event)) return;
    event.stopPropagation();
    close();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (panel.contains(target) || button.contains(target)) return;
    panel.hidden = true;
    button.ariaExpanded = "false";
  });
  return { open, close };
}
