// Citations of an answer: what is behind one, and where it is.

import { citedPlace, clearHighlight, highlight, highlightLater } from "./evidence_place.js";
import { isComposing, isPlainClick } from "./keys.js";
import { readStored, writeStored } from "./storage.js";

const root = document.documentElement;
const STORAGE_KEY = "ashiato-unsupported";
const SHOW_DELAY_MS = 120; // long enough to reach the box with the pointer
let tip;
let shownLink;
let timer;
let isTouch = false;

export function startEvidence() {
  if (readStored(STORAGE_KEY) === "on") root.dataset.unsupported = "";
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch") return;
    const link = target.closest?.(".evidence-tip") ? shownLink : evidenceLink(target);
    clearTimeout(timer);
    if (link !== shownLink) timer = setTimeout(() => (link ? showTip(link) : hideTip()), SHOW_DELAY_MS);
  });
  document.addEventListener("pointerdown", ({ target, pointerType }) => {
    isTouch = pointerType === "touch";
    if (shownLink && !evidenceLink(target) && !target.closest(".evidence-tip")) hideTip();
  });
  document.addEventListener("focusin", ({ target }) => {
    if (evidenceLink(target)?.matches(":focus-visible")) showTip(evidenceLink(target));
    else if (!target.closest(".evidence-tip")) hideTip();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !shownLink || isComposing(event)) return;
    hideTip();
    event.stopImmediatePropagation();
  }, true);
  document.addEventListener("scroll", hideTip, { capture: true, passive: true });
  document.addEventListener("click", onClick);
  document.addEventListener("htmx:load", updateButtons);
  updateButtons();
}

function evidenceLink(target) {
  return target.closest?.("a.cite, a.computed") ?? null;
}

function showTip(link) {
  const entry = entryOf(link);
  hideTip();
  if (!entry || !link.isConnected) return;
  if (!tip) {
    tip = Object.assign(document.createElement("div"), { id: "evidence-tip", className: "evidence-tip", popover: "manual" });
    tip.setAttribute("role", "tooltip");
  }
  tip.replaceChildren(...entry.cloneNode(true).childNodes);
  (link.closest("dialog") ?? document.body).append(tip);
  tip.showPopover();
  shownLink = link;
  link.setAttribute("aria-describedby", tip.id);
  // Below the link, or above it if there is no room.
  const linkBox = link.getClientRects()[0];
  const { width, height } = tip.getBoundingClientRect();
  const below = linkBox.bottom + 6;
  const top = below + height < innerHeight ? below : Math.max(8, linkBox.top - height - 6);
  tip.style.left = `${Math.max(8, Math.min(linkBox.left, innerWidth - width - 8))}px`;
  tip.style.top = `${top}px`;
}

// What the server says about a link.
function entryOf(link) {
  const links = link.closest(".run, article, main")?.querySelector(".evidence-bar template");
  return links?.content.children[Number(link.dataset.evidence) - 1];
}

function hideTip(event) {
  if (event?.target && tip?.contains(event.target)) return;
  clearTimeout(timer);
  if (!shownLink) return;
  shownLink.removeAttribute("aria-describedby");
  shownLink = undefined;
  if (tip.isConnected) tip.hidePopover();
}

function onClick(event) {
  const button = event.target.closest("[data-unsupported][aria-pressed]");
  if (button) {
    const isOn = root.toggleAttribute("data-unsupported");
    writeStored(STORAGE_KEY, isOn ? "on" : "off");
    button.closest("[popover]")?.hidePopover();
    return updateButtons();
  }
  const link = event.target.closest("a.cite, a.computed, a.evidence-step");
  if (!link || !isPlainClick(event)) return;
  // A finger has no hover: the first tap explains, the second opens.
  if (isTouch && link.matches(".cite, .computed") && shownLink !== link) {
    event.preventDefault();
    event.stopImmediatePropagation();
    showTip(link);
    return;
  }
  hideTip();
  clearHighlight();
  if ("document" in link.dataset) return; // opens its page
  const text = entryOf(link)?.querySelector(".evidence-text");
  const place = text && citedPlace(text);
  if (link.pathname === location.pathname) event.stopPropagation(); // not in the side panel, too
  const step = openStep(link);
  if (step) event.preventDefault();
  if (!place) return;
  highlight(step ?? document, place);
  if (!step) highlightLater(place); // it is loaded, unless it is already beside the rows
}

// On a shared page the steps are below the answers.
function openStep(link) {
  const step = document.getElementById(link.hash.slice(1))?.closest(".shared-steps > li");
  const details = step?.querySelector("details");
  if (!details) return null;
  for (const closed of [details, step.closest("details")]) if (closed) closed.open = true;
  step.scrollIntoView({ block: "center" });
  details.querySelector("summary").focus({ preventScroll: true });
  return step;
}

function updateButtons() {
  for (const button of document.querySelectorAll("[data-unsupported][aria-pressed]")) {
    button.setAttribute("aria-pressed", String("unsupported" in root.dataset));
  }
}
