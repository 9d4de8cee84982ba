// A run's page: beside the rows are the details of one of them; on a narrow page they open as a sheet.

import { startConnection } from "./connection.js";
import { clearStepSearch, startStepSearch } from "./find_steps.js";
import { hasModifier, isComposing, isPlainClick } from "./keys.js";
import { startRatings } from "./rating.js";
import { startRuns } from "./run.js";

const wideScreen = matchMedia("(min-width: 75rem)");
const panel = document.getElementById("panel");
const stepNav = document.querySelector(".step-nav");
const sideTabs = document.querySelectorAll(".side-tabs [data-side]");
const announcer = document.getElementById("announcer");
const PROBLEMS = "[data-status=failed], [data-status=blocked], [data-status=unknown]";
const LOAD_DELAY_MS = 120;
let loadTimer;
let afterLoading; // waits for rows that a long run loads later
let isClosing = false; // the sheet's entry in the history is being left
let isChosen = false; // whether the user chose the row; a preselected one isn't in the URL

startRuns();
startRatings();
startConnection();
arrangePanel();
wideScreen.addEventListener("change", arrangePanel);
if (!openTarget()) preselect();
startStepSearch({ all: (then) => loadRemaining(then) || then(), move: () => moveSelection(1) });
addEventListener("hashchange", () => isClosing || openTarget());
addEventListener("popstate", onPopstate);
document.addEventListener("keydown", onKeydown);
document.addEventListener("click", onClick);
document.addEventListener("htmx:oobAfterSwap", restoreSelection);
document.addEventListener("htmx:oobAfterSwap", loadReview);
document.addEventListener("htmx:afterSettle", onAfterSettle);
document.addEventListener("htmx:responseError", onRequestFailed);
document.addEventListener("htmx:sendError", onRequestFailed);
panel.addEventListener("toggle", onPanelToggle);

// A sheet closes itself: by Escape, or by a click beside it.
function arrangePanel() {
  if (panel.matches(":popover-open")) panel.hidePopover();
  panel.popover = wideScreen.matches ? null : "auto";
  if (wideScreen.matches && !panel.hasChildNodes()) preselect();
  else if (!wideScreen.matches) showSide("answer");
}

function openTarget() {
  const step = document.getElementById(location.hash.slice(1));
  if (!step && location.hash.startsWith("#step-")) return loadRemaining(openTarget);
  if (!step?.matches(".step")) return false;
  if (step.hidden) clearStepSearch();
  isChosen = true;
  chooseStep(step);
  step.scrollIntoView({ block: "center" });
  return true;
}

// A page starts with the answer; without one, with the step that went wrong or waits.
function preselect() {
  if (!wideScreen.matches || document.querySelector(".run[data-status=completed]")) return;
  const selectors = [`.step:is(${PROBLEMS})`, ".step[data-status=waiting]"];
  const step = selectors.map((selector) => document.querySelector(selector)).find(Boolean);
  if (step) chooseStep(step);
}

// The panel is the answer or a step; on a narrow page the step is a sheet.
function showSide(side) {
  stepNav.dataset.side = side;
  for (const tab of sideTabs) tab.ariaPressed = String(tab.dataset.side === side);
}

function showAnswer() {
  history.replaceState(history.state, "", location.pathname + location.search);
  showSide("answer");
}

function onClick(event) {
  const opener = event.target.closest("[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  if (event.target.matches("dialog")) event.target.close();
  if (event.target.closest("[data-close-panel]")) closePanel();
  if (event.target.closest("[data-next-problem]")) moveSelection(1, PROBLEMS);
  if (event.target.closest("[data-load-again]") && selectedStep()) loadDetails(selectedStep());
  const side = event.target.closest("[data-side]:not(.step-nav)")?.dataset.side;
  if (side === "answer") showAnswer();
  else if (side) openSelected();
  const menu = document.querySelector(".run-menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
  const reach = event.target.closest("[data-reach]");
  if (reach && openTargetForm(reach.dataset.reach)) event.preventDefault();
  const tab = event.target.closest("#panel .tabs a");
  if (tab && isPlainClick(event)) saveLocation(selectedStep(), tab.dataset.tab);
  // Goes to a step on this page without leaving it or its filter.
  const link = event.target.closest('a[href*="#step-"]:not(.more-steps a)');
  if (link?.pathname === location.pathname && isPlainClick(event)) {
    event.preventDefault();
    history.replaceState(history.state, "", location.search + link.hash);
    openTarget();
  }
  const summary = event.target.closest(".step > details > summary");
  if (!summary || event.detail === 0) return;
  event.preventDefault();
  isChosen = true;
  chooseStep(summary.closest(".step"));
}

// Opens a form elsewhere on the page and puts the cursor into it.
function openTargetForm(selector) {
  const form = document.querySelector(selector);
  if (!form) return false;
  for (let fold = form; fold; fold = fold.parentElement.closest("details")) fold.open = true;
  form.querySelector("textarea, input:not([type=hidden])")?.focus();
  form.scrollIntoView({ block: "center" });
  return true;
}

// Loads the remaining rows, then runs what needs them.
function loadRemaining(then) {
  const more = document.querySelector(".more-steps a");
  if (!more) return false;
  afterLoading = then;
  htmx.trigger(more, "click");
  return true;
}

function onAfterSettle({ target, detail: { requestConfig } }) {
  if (target.matches?.(".step-review:has(.note, .label, .hit)")) target.closest("details").open = true;
  if (requestConfig?.path.includes("/again/")) panel.querySelector("#panel-title")?.focus();
  if (document.querySelector(".more-steps") || !afterLoading) return;
  afterLoading();
  afterLoading = undefined;
}

const KEY_ACTIONS = {
  j: () => moveSelection(1),
  k: () => moveSelection(-1),
  e: () => moveSelection(1, PROBLEMS),
  x: toggleStep,
  Enter: openSelected,
  Escape: closePanel,
};

function onKeydown(event) {
  if (isComposing(event) || hasModifier(event)) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const keyControl = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!KEY_ACTIONS[key] && !keyControl) return;
  if (key === "Enter" && !event.target.matches(".step > details > summary")) return;
  event.preventDefault();
  keyControl?.closest("#review")?.setAttribute("open", "");
  if (KEY_ACTIONS[key]) KEY_ACTIONS[key]();
  else if (keyControl.matches("input, textarea")) keyControl.focus();
  else keyControl.click();
}

function selectedStep() {
  return document.querySelector("summary[aria-current]")?.closest(".step");
}

function currentStep() {
  return document.activeElement.closest(".step") ?? (isChosen ? selectedStep() : undefined);
}

// Selects the next row, or the next of a kind, wrapping around.
function moveSelection(step, kind = "") {
  const rows = [...document.querySelectorAll(".step:not([hidden])")];
  const index = rows.indexOf(currentStep());
  const candidates = step > 0 ? rows.slice(index + 1) : rows.slice(0, index < 0 ? undefined : index).reverse();
  const match = candidates.find((row) => row.matches(kind || "*"));
  if (!match && step > 0 && document.querySelector(".more-steps")) return loadRemaining(() => moveSelection(step, kind));
  const next = match ?? (kind ? rows.find((row) => row.matches(kind)) : undefined);
  if (!next) return;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "nearest" });
  isChosen = true;
  if (wideScreen.matches) chooseStep(next);
}

function toggleStep() {
  const details = (currentStep() ?? selectedStep())?.querySelector("details");
  if (details) details.open = !details.open;
}

function openSelected() {
  const step = currentStep() ?? selectedStep();
  if (!step) return;
  isChosen = true;
  chooseStep(step, () => panel.querySelector("h2")?.focus());
}

function chooseStep(step, then) {
  for (const old of document.querySelectorAll("summary[aria-current]")) old.removeAttribute("aria-current");
  step.querySelector("summary").setAttribute("aria-current", "true");
  panel.toggleAttribute("data-chosen", isChosen); // keys for notes are about a step only then
  if (isChosen) saveLocation(step);
  const tab = [...sideTabs].at(-1);
  tab.hidden = false;
  tab.textContent = tab.dataset.label.replace("{}", step.id.replace("step-", ""));
  if (wideScreen.matches) showSide("step");
  clearTimeout(loadTimer);
  loadTimer = setTimeout(() => loadDetails(step, then), LOAD_DELAY_MS);
}

// The URL has the row and the tab, so a link or a reload opens the same details.
function saveLocation(step, tab = undefined) {
  const search = new URLSearchParams(location.search);
  if (tab === "result") search.delete("tab");
  else if (tab) search.set("tab", tab);
  const hash = step && isChosen ? `#${step.id}` : location.hash;
  history.replaceState(history.state, "", `${location.pathname}${search.size ? `?${search}` : ""}${hash}`);
}

// A live run replaces its rows; the selected one stays selected.
function restoreSelection() {
  if (document.querySelector("summary[aria-current]")) return;
  if (!isChosen) return preselect();
  const step = document.getElementById(location.hash.slice(1));
  if (!step?.matches(".step")) return;
  step.querySelector("summary").setAttribute("aria-current", "true");
  // Text being typed is never replaced.
  const fields = [...panel.querySelectorAll("textarea, input:not([type=hidden]):not([type=checkbox])")];
  if (panel.contains(document.activeElement) || fields.some((field) => field.value !== field.defaultValue)) return;
  clearTimeout(loadTimer);
  loadTimer = setTimeout(() => loadDetails(step), LOAD_DELAY_MS);
}

// A run watched to its end can be reviewed, as after a reload.
function loadReview() {
  const review = document.getElementById("review");
  if (!review?.hidden || document.querySelector(".run[data-live]")) return;
  // Of its own element: htmx drops one of two requests of the same element.
  const select = { source: review, target: review, swap: "outerHTML", select: "#review" };
  htmx.ajax("GET", location.pathname, select).catch(() => {}); // a reload brings it
}

async function loadDetails(step, then) {
  const openTab = panel.querySelector(".tabs [aria-current]")?.dataset.tab;
  const tab = openTab ?? new URLSearchParams(location.search).get("tab") ?? "result";
  const address = `${step.querySelector("[data-detail]").getAttribute("href")}?tab=${encodeURIComponent(tab)}`;
  await htmx.ajax("GET", address, { target: panel, swap: "innerHTML" }).catch(() => {}); // `onRequestFailed` says so
  if (isChosen) announcer.textContent = panel.querySelector("h2")?.textContent ?? "";
  if (!wideScreen.matches && panel.popover) {
    if (!panel.matches(":popover-open")) panel.showPopover();
    if (!history.state?.sheet) history.pushState({ sheet: true }, "");
    panel.scrollTop = 0;
    panel.querySelector("h2")?.focus();
  }
  then?.();
}

// Says that the details couldn't be loaded, and offers to try again.
function onRequestFailed({ detail }) {
  if (detail.target !== panel) return;
  const message = Object.assign(document.createElement("p"), { textContent: panel.dataset.failed, role: "alert" });
  const retryButton = document.createElement("button");
  Object.assign(retryButton, { type: "button", className: "button", textContent: panel.dataset.again });
  retryButton.dataset.loadAgain = "";
  const note = Object.assign(document.createElement("div"), { className: "panel-failed" });
  note.append(message, retryButton);
  panel.replaceChildren(note);
}

// Leaves the details: a sheet closes, and the focus returns to the row.
function closePanel() {
  const menu = document.querySelector(".run-menu[open]");
  if (menu) {
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  } else if (panel.matches(":popover-open")) return panel.hidePopover();
  else selectedStep()?.querySelector("summary").focus();
}

function onPanelToggle({ newState }) {
  if (newState !== "closed") return;
  selectedStep()?.querySelector("summary").focus();
  if (!history.state?.sheet) return;
  isClosing = true;
  history.back();
}

// Back closes the sheet. The step that was open before it doesn't open again.
function onPopstate() {
  const isLeft = panel.matches(":popover-open") && !history.state?.sheet;
  isClosing ||= isLeft;
  if (isLeft) panel.hidePopover();
  // After `hashchange`, and after the browser has moved the focus.
  setTimeout(() => {
    if (isClosing) selectedStep()?.querySelector("summary").focus({ preventScroll: true });
    isClosing = false;
  });
}
