// The model of a chat, its effort and its temperature, where the agent allows to choose them.

import { isComposing } from "./keys.js";
import { offer, place } from "./picker.js";

const form = document.getElementById("ask");
const session = document.getElementById("main").dataset.session;
const key = `ashiato-options-${session ?? "new"}`;
const button = document.getElementById("model-button");
const panel = document.getElementById("model-panel");
const FIELDS = ["model", "effort", "temperature"];

export function pickModel() {
  if (!button) return;
  const { close, open } = form.elements.model ? offer(form.elements.model, "model", { stays: true }) : openable();
  restore();
  form.elements.agent?.addEventListener("change", show);
  panel.addEventListener("change", changed);
  panel.addEventListener("input", changed);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.name !== "temperature" || isComposing(event)) return;
    event.preventDefault(); // it would send the message
    close();
  });
  // A field that can't be seen can't say what is wrong with it.
  panel.addEventListener("invalid", open, true);
  document.addEventListener("submit", ({ target }) => target === form && sessionStorage.removeItem(key));
  show();
}

function agent() {
  const name = form.elements.agent?.value;
  const all = [...form.querySelectorAll(".model[data-agent]")];
  return all.find((about) => about.dataset.agent === name) ?? all[0];
}

function show() {
  const own = agent();
  const models = form.elements.model;
  const mayChoose = Boolean(models) && "allowsModel" in own.dataset;
  const option = mayChoose && models.value
    ? panel.querySelector(`#model-options [data-value="${CSS.escape(models.value)}"]`)
    : null;
  const chosen = (option ?? own).dataset;
  const mayTune = "allowsParameters" in own.dataset;
  const effort = value("effort");
  const most = Number(chosen.maxTemperature);
  if (models) models.disabled = panel.querySelector(".model-list").hidden = !mayChoose;
  enable(part("effort"), mayTune && "effort" in chosen);
  // While a model reasons it has no temperature.
  enable(part("temperature"), mayTune && most > 0 && !("effort" in chosen && effort));
  if (form.elements.temperature && most) form.elements.temperature.max = chosen.maxTemperature;
  const none = panel.querySelector(".model-none");
  if (none) none.hidden = !mayTune || "effort" in chosen || most > 0;
  button.hidden = !mayChoose && (!mayTune || !("effort" in chosen || most > 0));
  for (const about of form.querySelectorAll(".model[data-agent]"))
    about.hidden = about !== own || !button.hidden;
  button.querySelector(".picked").textContent = option ? models.value : own.dataset.label;
  button.querySelector(".picked-tuning").textContent = tuning();
  const first = panel.querySelector(".own-model");
  if (first) first.textContent = own.dataset.label;
}

function part(name) {
  return panel.querySelector(`[data-part="${name}"]`);
}

function enable(fieldset, isOn) {
  if (!fieldset) return;
  fieldset.disabled = !isOn;
  fieldset.hidden = !isOn;
}

function value(name) {
  const field = form.elements[name];
  return field?.value ?? "";
}

function tuning() {
  const effort = part("effort");
  if (effort && !effort.disabled && value("effort"))
    return effort.querySelector(":checked").parentElement.textContent.trim();
  const temperature = part("temperature");
  return temperature && !temperature.disabled ? value("temperature") : "";
}

function changed() {
  sessionStorage.setItem(key, JSON.stringify(Object.fromEntries(FIELDS.map((name) => [name, value(name)]))));
  show();
}

// What was chosen and not sent yet stays when the page is reloaded.
function restore() {
  const kept = JSON.parse(sessionStorage.getItem(key) ?? "{}");
  for (const name of FIELDS) {
    const field = form.elements[name];
    if (field && name in kept) field.value = kept[name];
  }
  const models = form.elements.model;
  if (models && models.selectedIndex < 0) models.value = ""; // the model is gone
  models?.dispatchEvent(new Event("change"));
}

// Without a list of models there is nothing to search, only a panel to open.
function openable() {
  const open = () => {
    panel.hidden = false;
    place(panel, button);
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
