// Links from an answer to observations: what is behind one, and where it is.

import { clear, highlight, highlightLater, placeOf } from "./evidence_place.js";
import { isComposing } from "./keys.js";

const root = document.documentElement;
const NAME = "ashiato-unsupported";
const DELAY = 120; // long enough to reach the box with the pointer
let tip;
let shown;
let timer;
let touched = false;

export function showEvidence() {
  if (kept()) root.dataset.unsupported = "";
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "touch") later(target.closest?.(".evidence-tip") ? shown : link(target));
  });
  document.addEventListener("pointerdown", ({ target, pointerType }) => {
    touched = pointerType === "touch";
    if (shown && !link(target) && !target.closest(".evidence-tip")) hide();
  });
  document.addEventListener("focusin", ({ target }) => {
    if (link(target)?.matches(":focus-visible")) show(link(target));
    else if (!target.closest(".evidence-tip")) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !shown || isComposing(event)) return;
    hide();
    event.stopImmediatePropagation();
  }, true);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("click", clicked);
  document.addEventListener("htmx:load", press);
  press();
}

function link(target) {
  return target.closest?.("a.evidence") ?? null;
}

function later(next) {
  clearTimeout(timer);
  if (next === shown) return;
  timer = setTimeout(() => (next ? show(next) : hide()), DELAY);
}

function show(next) {
  const found = entry(next);
  hide();
  if (!found || !next.isConnected) return;
  tip ??= box();
  tip.replaceChildren(...found.cloneNode(true).childNodes);
  (next.closest("dialog") ?? document.body).append(tip);
  tip.showPopover();
  shown = next;
  next.setAttribute("aria-describedby", tip.id);
  place(next);
}

// What the server says about a link.
function entry(next) {
  const links = next.closest(".run, article, main")?.querySelector(".evidence-bar template");
  return links?.content.children[Number(next.dataset.evidence) - 1];
}

function box() {
  const element = document.createElement("div");
  element.id = "evidence-tip";
  element.className = "evidence-tip";
  element.setAttribute("role", "tooltip");
  element.popover = "manual";
  return element;
}

// Below the link, or above it if there is no room.
function place(next) {
  const at = next.getClientRects()[0];
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - width - 8));
  const below = at.bottom + 6;
  const top = below + height < innerHeight ? below : Math.max(8, at.top - height - 6);
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

function hide(event) {
  if (event?.target && tip?.contains(event.target)) return;
  clearTimeout(timer);
  if (!shown) return;
  shown.removeAttribute("aria-describedby");
  shown = undefined;
  if (tip.isConnected) tip.hidePopover();
}

function clicked(event) {
  const button = event.target.closest("[data-unsupported][aria-pressed]");
  if (button) return keep(!("unsupported" in root.dataset));
  const next = event.target.closest("a.evidence, a.evidence-step");
  if (!next || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  // A finger has no hover: the first tap explains, the second opens.
  if (touched && next.matches(".evidence") && shown !== next) {
    event.preventDefault();
    event.stopImmediatePropagation();
    show(next);
    return;
  }
  hide();
  clear();
  if ("document" in next.dataset) return; // opens its page
  const text = entry(next)?.querySelector(".evidence-text");
  const place = text && placeOf(text);
  const step = open(next);
  if (step) event.preventDefault();
  if (place && step) highlight(step, place);
  else if (place) reveal(place);
}

// A run's page loads the step, unless it is already beside the rows.
function reveal(place) {
  highlight(document, place);
  highlightLater(place);
}

// In a chat the step is on the page, unless it is folded away.
function open(next) {
  const run = next.closest(".run");
  const number = next.hash.replace("#step-", "");
  const step = document.getElementById(run ? `${run.id.replace("run-", "step-")}-${number}` : next.hash.slice(1));
  const details = step?.querySelector("details");
  if (!details) return null;
  for (const closed of [details, step.closest("details")]) if (closed) closed.open = true;
  if (!step.getClientRects().length) return null;
  step.scrollIntoView({ block: "center" });
  details.querySelector("summary").focus({ preventScroll: true });
  return step;
}

function kept() {
  try {
    return localStorage.getItem(NAME) === "on";
  } catch {
    return false; // storage is disabled
  }
}

function keep(isOn) {
  if (isOn) root.dataset.unsupported = "";
  else delete root.dataset.unsupported;
  try {
    localStorage.setItem(NAME, isOn ? "on" : "off");
  } catch {
    // Storage is disabled or full: the choice lasts as long as the page.
  }
  press();
}

function press() {
  for (const button of document.querySelectorAll("[data-unsupported][aria-pressed]")) {
    button.setAttribute("aria-pressed", String("unsupported" in root.dataset));
  }
}
