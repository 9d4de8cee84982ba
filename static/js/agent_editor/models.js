// Comboboxes of the configured models; a LiteLLM name can be typed as well.

import { isComposing } from "../keys.js";

export function start(page, form) {
  const options = JSON.parse(document.getElementById("model-options").textContent);
  const input = form.elements.model;
  const about = page.querySelector("[data-model-about]");
  const box = input.closest("[data-combobox]");
  const badge = page.querySelector("[data-test-model]");

  function describe() {
    const found = options.find((option) => option.name === input.value);
    const parts = found ? [found.about, ...(found.abilities ?? [])] : [];
    about.textContent = found?.problem ?? (found ? parts.filter(Boolean).join(" · ") : input.value ? box.dataset.none : "");
    about.toggleAttribute("data-problem", Boolean(found?.problem));
    badge.textContent = input.value || box.dataset.default;
  }

  // A link from a model's page: use it here.
  const asked = new URLSearchParams(location.search).get("model");
  if (asked && !input.disabled && input.value !== asked) {
    input.value = asked;
    setTimeout(() => input.dispatchEvent(new Event("change", { bubbles: true })));
  }
  combobox(input, box.querySelector("[role=listbox]"), options, describe);
  input.addEventListener("input", describe);
  describe();
  fallbacks(page, form, options);
}

function combobox(input, list, options, picked) {
  let active = -1;
  input.removeAttribute("list");
  const about = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id };
  for (const [name, value] of Object.entries(about)) input.setAttribute(name, value);

  function open(isAll) {
    const words = isAll ? "" : input.value.trim().toLowerCase();
    const found = options.filter((option) => `${option.name} ${option.about} ${option.model ?? ""}`.toLowerCase().includes(words));
    list.replaceChildren(...found.map((option, at) => item(option, `${list.id}-${at}`)));
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    choose(-1);
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(at) {
    active = at;
    [...list.children].forEach((child, number) => child.setAttribute("aria-selected", number === at));
    const chosen = list.children[at];
    if (!chosen) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function take(name) {
    input.value = name;
    close();
    input.dispatchEvent(new Event("change", { bubbles: true }));
    picked(name);
  }

  input.addEventListener("focus", () => open(true));
  input.addEventListener("click", () => list.hidden && open(true));
  input.addEventListener("input", () => open(false));
  input.addEventListener("blur", () => setTimeout(close, 150));
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => {
    const found = target.closest("[role=option]");
    if (found) take(found.dataset.value);
  });
  input.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      if (list.hidden) open(true);
      const count = list.children.length;
      if (count) choose((active + step + count) % count);
    } else if (event.key === "Enter") {
      if (active >= 0 && !list.hidden) take(list.children[active].dataset.value);
      else if (!list.hidden) take(input.value);
    } else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

function item(option, id) {
  const found = Object.assign(document.createElement("li"), { id });
  found.setAttribute("role", "option");
  found.dataset.value = option.name;
  const line = (text, kind) => Object.assign(document.createElement("span"), { textContent: text, className: kind });
  found.append(line(option.name, "name"));
  if (option.problem) found.append(line(option.problem, "problem"));
  else found.append(line([option.about, ...(option.abilities ?? [])].filter(Boolean).join(" · "), "about"));
  return found;
}

// The lines of the text field as an ordered list, with a combobox for another one.
function fallbacks(page, form, options) {
  const text = form.elements.fallback_models;
  const place = page.querySelector("[data-fallbacks]");
  const list = Object.assign(document.createElement("ol"), { className: "fallback-list" });
  const box = Object.assign(document.createElement("div"), { className: "combobox" });
  const input = Object.assign(document.createElement("input"), { type: "text", autocomplete: "off", placeholder: place.dataset.add });
  const menu = Object.assign(document.createElement("ul"), { id: "fallback-list-options", hidden: true });
  input.setAttribute("aria-label", place.dataset.add);
  menu.setAttribute("role", "listbox");
  menu.setAttribute("aria-label", place.dataset.add);
  box.append(input, menu);
  if (!text.matches(":disabled")) place.append(list, box);
  else place.append(list);
  text.hidden = true;
  page.querySelector("[data-fallback-label]").removeAttribute("for");

  const lines = () => text.value.split("\n").map((line) => line.trim()).filter(Boolean);

  function write(names) {
    text.value = [...new Set(names)].join("\n");
    text.dispatchEvent(new Event("change", { bubbles: true }));
    render();
  }

  function render() {
    list.replaceChildren(...lines().map((name, at) => row(name, at)));
  }

  function row(name, at) {
    const found = document.createElement("li");
    const known = options.find((option) => option.name === name);
    found.append(Object.assign(document.createElement("span"), { className: "name", textContent: name }));
    found.append(Object.assign(document.createElement("span"), { className: "about", textContent: known?.problem ?? known?.about ?? "" }));
    if (!text.matches(":disabled")) {
      const up = button("↑", place.dataset.up.replace("{}", name), () => write(moved(at)));
      up.disabled = at === 0;
      found.append(up, button("×", place.dataset.remove.replace("{}", name), () => write(lines().filter((line) => line !== name))));
    }
    return found;
  }

  function moved(at) {
    const names = lines();
    [names[at - 1], names[at]] = [names[at], names[at - 1]];
    return names;
  }

  combobox(input, menu, options, (name) => {
    input.value = "";
    if (name.trim()) write([...lines(), name.trim()]);
  });
  render();
}

function button(text, label, act) {
  const found = Object.assign(document.createElement("button"), { type: "button", className: "icon-button", textContent: text, title: label });
  found.setAttribute("aria-label", label);
  found.addEventListener("click", act);
  return found;
}
