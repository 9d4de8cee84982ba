// Lists with a search field in the composer, in place of plain selects.

import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

const form = document.getElementById("ask");
const session = document.getElementById("main").dataset.session;
const storageKey = session ? `ashiato-agent-${session}` : "ashiato-agent";
// A pick stays until it is sent; on a new chat it is a habit.
const storage = session ? sessionStorage : localStorage;

export function startAgentPicker() {
  const agents = form.elements.agent;
  if (!agents?.options) return;
  createPicker(agents, "agent");
  agents.addEventListener("change", () => onAgentChange(agents.value));
  document.addEventListener("submit", ({ target }) => session && target === form && storage.removeItem(storageKey));
  const savedAgent = storage.getItem(storageKey);
  const isOffered = [...agents.options].some(({ value }) => value === savedAgent);
  if (isOffered && !new URLSearchParams(location.search).has("agent")) chooseValue(agents, savedAgent);
}

// The select stays the form's field: what is picked here is picked there.
export function createPicker(select, name, { stays = false } = {}) {
  const button = document.getElementById(`${name}-button`);
  const panel = document.getElementById(`${name}-panel`);
  const input = panel.querySelector("[role=combobox]");
  const list = panel.querySelector("[role=listbox]");
  const options = [...list.children];
  let active = null;

  select.closest("label").classList.add("visually-hidden");
  select.closest("label").ariaHidden = "true";
  select.tabIndex = -1;
  panel.hidden = true;
  panel.dataset.ready = "";
  button.addEventListener("click", () => (panel.hidden ? open() : close()));
  button.addEventListener("keydown", (event) => {
    if (isComposing(event) || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", filter);
  panel.addEventListener("keydown", onKeydown);
  list.addEventListener("click", ({ target }) => pickOption(target.closest("[role=option]")));
  list.addEventListener("pointermove", ({ target }) => setActive(target.closest("[role=option]"), false));
  document.addEventListener("pointerdown", ({ target }) => {
    if (!panel.contains(target) && !button.contains(target)) close(false);
  });
  panel.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !panel.contains(relatedTarget) && relatedTarget !== button) close(false);
  });
  select.addEventListener("change", showChosen);
  return { open, close };

  function open() {
    if (!panel.hidden) return;
    panel.hidden = false;
    positionPanel(panel, button);
    button.ariaExpanded = "true";
    input.value = "";
    filter();
    setActive(options.find((option) => option.dataset.value === select.value) ?? options[0]);
    // A phone's keyboard would cover the list.
    (matchMedia("(pointer: coarse)").matches ? panel : input).focus({ preventScroll: true });
  }

  function close(returnsFocus = true) {
    if (panel.hidden) return;
    panel.hidden = true;
    button.ariaExpanded = "false";
    if (returnsFocus) button.focus({ preventScroll: true });
  }

  function filter() {
    const words = searchWords(input.value);
    for (const option of options) option.hidden = !hasAllWords(option.dataset.search, words);
    const [first] = visibleOptions();
    panel.querySelector(".picker-none").hidden = Boolean(first);
    setActive(first ?? null);
  }

  function visibleOptions() {
    return options.filter((option) => !option.hidden);
  }

  function onKeydown(event) {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step && !["Enter", "Escape"].includes(event.key)) return;
    const isOther = event.target.matches("input") && event.target !== input;
    if (isOther && event.key !== "Escape") return; // of another field in the panel
    event.preventDefault();
    event.stopPropagation(); // Escape would stop the run
    if (step) {
      const visible = visibleOptions();
      setActive(visible[(visible.indexOf(active) + step + visible.length) % visible.length]);
    } else if (event.key === "Enter") pickOption(active);
    else close();
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

  function pickOption(option) {
    if (!option) return;
    chooseValue(select, option.dataset.value);
    if (!stays) close();
  }

  function showChosen() {
    for (const option of options) option.ariaSelected = String(option.dataset.value === select.value);
    const chosen = options.find((option) => option.dataset.value === select.value);
    const avatar = chosen?.querySelector(".avatar");
    if (!avatar) return; // other buttons say more than the value
    button.querySelector(".picked").textContent = select.value;
    button.querySelector(".avatar")?.replaceWith(avatar.cloneNode(true));
  }
}

function chooseValue(select, value) {
  if (select.value === value) return;
  select.value = value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
}

// Below or above its button, as far as the composer is wide enough.
export function positionPanel(panel, button) {
  const maxLeft = form.clientWidth - panel.offsetWidth;
  panel.style.insetInlineStart = `${Math.max(0, Math.min(button.offsetLeft, maxLeft))}px`;
}

function onAgentChange(name) {
  storage.setItem(storageKey, name);
  for (const examples of document.querySelectorAll("[data-examples-of]"))
    examples.hidden = examples.dataset.examplesOf !== name;
}
