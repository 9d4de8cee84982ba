// Comboboxes of the configured models; a LiteLLM name can be typed as well.

import { isComposing } from "../keys.js";

export function startModels(page, form) {
  const options = JSON.parse(document.getElementById("model-options").textContent);
  const input = form.elements.model;
  const description = page.querySelector("[data-model-about]");
  const box = input.closest("[data-combobox]");
  const badge = page.querySelector("[data-test-model]");

  function showModel() {
    const option = options.find(({ name }) => name === input.value);
    const parts = option ? [option.about, ...(option.abilities ?? [])] : [];
    description.textContent = option?.problem ?? (option ? parts.filter(Boolean).join(" · ") : input.value ? box.dataset.none : "");
    description.toggleAttribute("data-problem", Boolean(option?.problem));
    badge.textContent = input.value || box.dataset.default;
  }

  // A link from a model's page: use it here.
  const linkedModel = new URLSearchParams(location.search).get("model");
  if (linkedModel && !input.disabled && input.value !== linkedModel) {
    input.value = linkedModel;
    setTimeout(() => input.dispatchEvent(new Event("change", { bubbles: true })));
  }
  startCombobox(input, box.querySelector("[role=listbox]"), options, showModel);
  input.addEventListener("input", showModel);
  showModel();
  startFallbacks(page, form, options);
}

function startCombobox(input, list, options, onPick) {
  let activeIndex = -1;
  input.removeAttribute("list");
  const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
  for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);

  function open(isAll) {
    const query = isAll ? "" : input.value.trim().toLowerCase();
    const matches = options.filter((option) => `${option.name} ${option.about} ${option.model ?? ""}`.toLowerCase().includes(query));
    list.replaceChildren(...matches.map((option, index) => optionElement(option, `${list.id}-${index}`)));
    list.hidden = !matches.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    setActive(-1);
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function setActive(index) {
    activeIndex = index;
    [...list.children].forEach((child, number) => child.setAttribute("aria-selected", number === index));
    const chosen = list.children[index];
    if (!chosen) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function pickName(name) {
    input.value = name;
    close();
    input.dispatchEvent(new Event("change", { bubbles: true }));
    onPick(name);
  }

  input.addEventListener("focus", () => open(true));
  input.addEventListener("click", () => list.hidden && open(true));
  input.addEventListener("input", () => open(false));
  input.addEventListener("blur", () => setTimeout(close, 150));
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => {
    const option = target.closest("[role=option]");
    if (option) pickName(option.dataset.value);
  });
  input.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      if (list.hidden) open(true);
      const count = list.children.length;
      // With no option active, up goes to the last one.
      if (count) setActive((Math.max(activeIndex, step < 0 ? 0 : -1) + step + count) % count);
    } else if (event.key === "Enter") {
      if (activeIndex >= 0 && !list.hidden) pickName(list.children[activeIndex].dataset.value);
      else if (!list.hidden) pickName(input.value);
    } else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

function optionElement(option, id) {
  const element = Object.assign(document.createElement("li"), { id });
  element.setAttribute("role", "option");
  element.dataset.value = option.name;
  const line = (text, kind) => Object.assign(document.createElement("span"), { textContent: text, className: kind });
  element.append(line(option.name, "name"));
  if (option.problem) element.append(line(option.problem, "problem"));
  else element.append(line([option.about, ...(option.abilities ?? [])].filter(Boolean).join(" · "), "about"));
  return element;
}

// The lines of the text field as an ordered list, with a combobox for another one.
function startFallbacks(page, form, options) {
  const text = form.elements.fallback_models;
  const container = page.querySelector("[data-fallbacks]");
  const list = Object.assign(document.createElement("ol"), { className: "fallback-list" });
  const box = Object.assign(document.createElement("div"), { className: "combobox" });
  const input = Object.assign(document.createElement("input"), { type: "text", autocomplete: "off", placeholder: container.dataset.add });
  const menu = Object.assign(document.createElement("ul"), { id: "fallback-list-options", hidden: true });
  input.setAttribute("aria-label", container.dataset.add);
  menu.setAttribute("role", "listbox");
  menu.setAttribute("aria-label", container.dataset.add);
  box.append(input, menu);
  if (!text.matches(":disabled")) container.append(list, box);
  else container.append(list);
  text.hidden = true;
  page.querySelector("[data-fallback-label]").removeAttribute("for");

  const lines = () => text.value.split("\n").map((line) => line.trim()).filter(Boolean);

  function write(names) {
    text.value = [...new Set(names)].join("\n");
    text.dispatchEvent(new Event("change", { bubbles: true }));
    render();
  }

  function render() {
    list.replaceChildren(...lines().map(createRow));
  }

  function createRow(name, index) {
    const row = document.createElement("li");
    const model = options.find((option) => option.name === name);
    row.append(Object.assign(document.createElement("span"), { className: "name", textContent: name }));
    row.append(Object.assign(document.createElement("span"), { className: "about", textContent: model?.problem ?? model?.about ?? "" }));
    if (!text.matches(":disabled")) {
      const up = createButton("↑", container.dataset.up.replace("{}", name), () => {
        const names = lines();
        [names[index - 1], names[index]] = [names[index], names[index - 1]];
        write(names);
      });
      up.disabled = index === 0;
      row.append(up, createButton("×", container.dataset.remove.replace("{}", name), () => write(lines().filter((line) => line !== name))));
    }
    return row;
  }

  startCombobox(input, menu, options, (name) => {
    input.value = "";
    if (name.trim()) write([...lines(), name.trim()]);
  });
  render();
}

function createButton(text, label, onClick) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "icon-button", textContent: text, title: label });
  button.setAttribute("aria-label", label);
  button.addEventListener("click", onClick);
  return button;
}
