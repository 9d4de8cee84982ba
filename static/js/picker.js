// Lists with a search field in the composer, in place of plain selects.

import { isComposing } from "./keys.js";

const form = document.getElementById("ask");
const session = document.getElementById("main").dataset.session;
const key = session ? `ashiato-agent-${session}` : "ashiato-agent";
// A pick stays until it is sent; on a new chat it is a habit.
const storage = session ? sessionStorage : localStorage;

export function pick() {
  const agents = form.elements.agent;
  if (!agents?.options) return;
  offer(agents, "agent");
  agents.addEventListener("change", () => picked(agents.value));
  document.addEventListener("click", cardChosen);
  document.addEventListener("submit", ({ target }) => session && target === form && storage.removeItem(key));
  document.querySelector(".view-all")?.addEventListener("click", viewAll);
  restore(agents);
  reveal();
}

// The select stays the form's field: what is picked here is picked there.
export function offer(select, name, { stays = false } = {}) {
  const button = document.getElementById(`${name}-button`);
  const panel = document.getElementById(`${name}-panel`);
  const input = panel.querySelector("[role=combobox]");
  const list = panel.querySelector("[role=listbox]");
  const options = [...list.children];
  let active = null;

  hide(select);
  panel.hidden = true;
  panel.dataset.ready = "";
  button.addEventListener("click", () => (panel.hidden ? open() : close()));
  button.addEventListener("keydown", (event) => {
    if (isComposing(event) || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    open();
  });
  input.addEventListener("input", filter);
  panel.addEventListener("keydown", pressed);
  list.addEventListener("click", ({ target }) => take(target.closest("[role=option]")));
  list.addEventListener("pointermove", ({ target }) => mark(target.closest("[role=option]"), false));
  document.addEventListener("pointerdown", ({ target }) => {
    if (!panel.contains(target) && !button.contains(target)) close(false);
  });
  panel.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !panel.contains(relatedTarget) && relatedTarget !== button) close(false);
  });
  select.addEventListener("change", show);
  return { open, close };

  function open() {
    if (!panel.hidden) return;
    panel.hidden = false;
    place(panel, button);
    button.ariaExpanded = "true";
    input.value = "";
    filter();
    mark(options.find((option) => option.dataset.value === select.value) ?? options[0]);
    // A phone's keyboard would cover the list.
    (matchMedia("(pointer: coarse)").matches ? panel : input).focus({ preventScroll: true });
  }

  function close(returns = true) {
    if (panel.hidden) return;
    panel.hidden = true;
    button.ariaExpanded = "false";
    if (returns) button.focus({ preventScroll: true });
  }

  function filter() {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    for (const option of options) {
      const text = plain(option.dataset.search);
      option.hidden = !words.every((word) => text.includes(word));
    }
    const [first] = found();
    panel.querySelector(".picker-none").hidden = Boolean(first);
    mark(first ?? null);
  }

  function found() {
    return options.filter((option) => !option.hidden);
  }

  function pressed(event) {
    if (isComposing(event)) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!move && !["Enter", "Escape"].includes(event.key)) return;
    const isOther = event.target.matches("input") && event.target !== input;
    if (isOther && event.key !== "Escape") return; // of another field in the panel
    event.preventDefault();
    event.stopPropagation(); // Escape would stop the run
    if (move) step(move);
    else if (event.key === "Enter") take(active);
    else close();
  }

  function step(by) {
    const visible = found();
    if (!visible.length) return;
    const at = visible.indexOf(active);
    mark(visible[(at + by + visible.length) % visible.length]);
  }

  function mark(option, scrolls = true) {
    if (option === undefined || (option === active && !scrolls)) return;
    active?.removeAttribute("data-active");
    active = option;
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.dataset.active = "";
    input.setAttribute("aria-activedescendant", option.id);
    if (scrolls) option.scrollIntoView({ block: "nearest" });
  }

  function take(option) {
    if (!option) return;
    choose(select, option.dataset.value);
    if (!stays) close();
  }

  function show() {
    for (const option of options) option.ariaSelected = String(option.dataset.value === select.value);
    const chosen = options.find((option) => option.dataset.value === select.value);
    const avatar = chosen?.querySelector(".avatar");
    if (!avatar) return; // other buttons say more than the value
    button.querySelector(".picked").textContent = select.value;
    button.querySelector(".avatar")?.replaceWith(avatar.cloneNode(true));
  }
}

export function choose(select, value) {
  if (select.value === value) return;
  select.value = value;
  select.dispatchEvent(new Event("change", { bubbles: true }));
}

// Below or above its button, as far as the composer is wide enough.
export function place(panel, button) {
  const room = form.clientWidth - panel.offsetWidth;
  panel.style.insetInlineStart = `${Math.max(0, Math.min(button.offsetLeft, room))}px`;
}

function hide(select) {
  select.closest("label").classList.add("visually-hidden");
  select.tabIndex = -1;
  select.closest("label").ariaHidden = "true";
}

// Full-width letters and capitals are found, too.
function plain(text) {
  return text.normalize("NFKC").toLowerCase().trim();
}

function picked(name) {
  storage.setItem(key, name);
  for (const card of document.querySelectorAll("[data-pick]")) {
    if (card.dataset.pick === name) card.ariaCurrent = "true";
    else card.removeAttribute("aria-current");
  }
  for (const examples of document.querySelectorAll("[data-examples-of]"))
    examples.hidden = examples.dataset.examplesOf !== name;
}

// On a phone the cards scroll sideways.
function reveal() {
  const cards = document.getElementById("agent-cards");
  const card = cards?.querySelector("[aria-current]");
  if (!card) return;
  const margin = parseFloat(getComputedStyle(cards).scrollPaddingInlineStart) || 0;
  cards.scrollLeft += card.getBoundingClientRect().left - cards.getBoundingClientRect().left - margin;
}

function cardChosen(event) {
  const card = event.target.closest?.("[data-pick]");
  if (!card || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(form.elements.agent, card.dataset.pick);
}

function viewAll({ target }) {
  const cards = document.getElementById("agent-cards");
  const isOpen = cards.toggleAttribute("data-all");
  target.ariaExpanded = String(isOpen);
  [target.textContent, target.dataset.fewer] = [target.dataset.fewer, target.textContent];
}

function restore(agents) {
  const kept = storage.getItem(key);
  const isOffered = [...agents.options].some(({ value }) => value === kept);
  if (isOffered && !new URLSearchParams(location.search).has("agent")) choose(agents, kept);
}
