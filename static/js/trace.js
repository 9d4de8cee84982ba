import { watch } from "./connection.js";
import { findSteps, stopFinding } from "./find_steps.js";
import { isComposing } from "./keys.js";
import { rate } from "./rating.js";
import { start } from "./run.js";

// Beside the rows are the details of one of them; on a narrow page they open as a sheet.
const wide = matchMedia("(min-width: 75rem)");
const panel = document.getElementById("panel");
const announcer = document.getElementById("announcer");
const PROBLEMS = "[data-status=failed], [data-status=blocked], [data-status=unknown]";
const PAUSE = 120;
let soon;
let later; // waits for rows that a long run loads later
let isClosing = false; // the sheet's entry in the history is being left
let isChosen = false; // whether the user chose the row; a preselected one isn't in the URL

start();
rate();
watch();
arrange();
wide.addEventListener("change", arrange);
if (!openTarget()) preselect();
findSteps({ all: (then) => readOn(then) || then(), move: () => move(1) });
addEventListener("hashchange", () => isClosing || openTarget());
addEventListener("popstate", wentBack);
document.addEventListener("keydown", pressed);
document.addEventListener("click", clicked);
document.addEventListener("htmx:oobAfterSwap", chooseAgain);
document.addEventListener("htmx:oobAfterSwap", judgeAtTheEnd);
document.addEventListener("htmx:afterSettle", settled);
document.addEventListener("htmx:responseError", notLoaded);
document.addEventListener("htmx:sendError", notLoaded);
panel.addEventListener("toggle", closed);

// A sheet closes itself: by Escape, or by a click beside it.
function arrange() {
  if (panel.matches(":popover-open")) panel.hidePopover();
  panel.popover = wide.matches ? null : "auto";
  if (wide.matches && !panel.hasChildNodes()) preselect();
}

function openTarget() {
  const step = document.getElementById(location.hash.slice(1));
  if (!step && location.hash.startsWith("#step-")) return readOn(openTarget);
  if (!step?.matches(".step")) return false;
  if (step.hidden) stopFinding();
  isChosen = true;
  choose(step);
  step.scrollIntoView({ block: "center" });
  return true;
}

// A page starts with the step that went wrong or waits, or with the first one.
function preselect() {
  if (!wide.matches) return;
  const wanted = [`.step:is(${PROBLEMS})`, ".step[data-status=waiting]", ".step"];
  const step = wanted.map((each) => document.querySelector(each)).find(Boolean);
  if (step) choose(step);
  else panel.textContent = panel.dataset.empty;
}

function clicked(event) {
  const opener = event.target.closest("[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  if (event.target.matches("dialog")) event.target.close();
  if (event.target.closest("[data-close-panel]")) close();
  if (event.target.closest("[data-next-problem]")) move(1, PROBLEMS);
  if (event.target.closest("[data-load-again]") && selected()) load(selected());
  const reach = event.target.closest("[data-reach]");
  if (reach && reachFor(reach.dataset.reach)) event.preventDefault();
  const tab = event.target.closest("#panel .tabs a");
  if (tab && isPlain(event)) remember(document.querySelector("summary[aria-current]")?.closest(".step"), tab.dataset.tab);
  if (isPlain(event) && goTo(event.target.closest('a[href*="#step-"]:not(.more-steps a)'))) event.preventDefault();
  const summary = event.target.closest(".step > details > summary");
  if (!summary || event.detail === 0) return;
  event.preventDefault();
  isChosen = true;
  choose(summary.closest(".step"));
}

// Opens a form elsewhere on the page and puts the cursor into it.
function reachFor(selector) {
  const there = document.querySelector(selector);
  if (!there) return false;
  there.open = true;
  there.querySelector("textarea, input:not([type=hidden])")?.focus();
  there.scrollIntoView({ block: "center" });
  return true;
}

// Goes to a step on this page without leaving it or its filter.
function goTo(link) {
  if (!link || link.pathname !== location.pathname) return false;
  history.replaceState(history.state, "", location.search + link.hash);
  openTarget();
  return true;
}

function isPlain(event) {
  return event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}

// Loads the remaining rows, then runs what needs them.
function readOn(then) {
  const more = document.querySelector(".more-steps a");
  if (!more) return false;
  later = then;
  htmx.trigger(more, "click");
  return true;
}

function settled({ detail: { requestConfig } }) {
  if (requestConfig?.path.includes("/again/")) panel.querySelector("#panel-title")?.focus();
  if (document.querySelector(".more-steps") || !later) return;
  later();
  later = undefined;
}

const MOVES = {
  j: () => move(1),
  k: () => move(-1),
  e: () => move(1, PROBLEMS),
  x: toggle,
  Enter: read,
  Escape: close,
};

function pressed(event) {
  if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const marked = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!MOVES[key] && !marked) return;
  if (key === "Enter" && !event.target.matches(".step > details > summary")) return;
  event.preventDefault();
  if (MOVES[key]) MOVES[key]();
  else if (marked.matches("input, textarea")) marked.focus();
  else marked.click();
}

function selected() {
  return document.querySelector("summary[aria-current]")?.closest(".step");
}

function current() {
  return document.activeElement.closest(".step") ?? (isChosen ? selected() : undefined);
}

// Selects the next row, or the next of a kind, wrapping around.
function move(by, kind = "") {
  const rows = [...document.querySelectorAll(".step:not([hidden])")];
  const at = rows.indexOf(current());
  const order = by > 0 ? rows.slice(at + 1) : rows.slice(0, at < 0 ? undefined : at).reverse();
  const further = order.find((row) => row.matches(kind || "*"));
  if (!further && by > 0 && document.querySelector(".more-steps")) return readOn(() => move(by, kind));
  const next = further ?? (kind ? rows.find((row) => row.matches(kind)) : undefined);
  if (!next) return;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "nearest" });
  isChosen = true;
  if (wide.matches) choose(next);
}

function toggle() {
  const details = (current() ?? selected())?.querySelector("details");
  if (details) details.open = !details.open;
}

function read() {
  const step = current();
  if (!step) return;
  isChosen = true;
  choose(step, () => panel.querySelector("h2")?.focus());
}

function choose(step, then) {
  unmark();
  step.querySelector("summary").setAttribute("aria-current", "true");
  panel.toggleAttribute("data-chosen", isChosen); // keys for notes are about a step only then
  if (isChosen) remember(step);
  clearTimeout(soon);
  soon = setTimeout(() => load(step, then), PAUSE);
}

function unmark() {
  for (const old of document.querySelectorAll("summary[aria-current]")) old.removeAttribute("aria-current");
}

// The URL has the row and the tab, so a link or a reload opens the same details.
function remember(step, tab = undefined) {
  const search = new URLSearchParams(location.search);
  if (tab === "result") search.delete("tab");
  else if (tab) search.set("tab", tab);
  const hash = step && isChosen ? `#${step.id}` : location.hash;
  history.replaceState(history.state, "", `${location.pathname}${search.size ? `?${search}` : ""}${hash}`);
}

// A live run replaces its rows; the selected one stays selected.
function chooseAgain() {
  if (document.querySelector("summary[aria-current]")) return;
  if (!isChosen) return preselect();
  const step = document.getElementById(location.hash.slice(1));
  if (!step?.matches(".step")) return;
  step.querySelector("summary").setAttribute("aria-current", "true");
  if (isInUse()) return;
  clearTimeout(soon);
  soon = setTimeout(() => load(step), PAUSE);
}

// Text being typed is never replaced.
function isInUse() {
  const fields = panel.querySelectorAll("textarea, input:not([type=hidden]):not([type=checkbox])");
  const isWritten = [...fields].some((field) => field.value !== field.defaultValue);
  return isWritten || panel.contains(document.activeElement);
}

// A run watched to its end can be reviewed, as after a reload.
function judgeAtTheEnd() {
  const review = document.getElementById("review");
  if (!review?.hidden || document.querySelector(".run[data-live]")) return;
  // Of its own element: htmx drops one of two requests of the same element.
  const select = { source: review, target: review, swap: "outerHTML", select: "#review" };
  htmx.ajax("GET", location.pathname, select);
}

async function load(step, then) {
  const open = panel.querySelector(".tabs [aria-current]")?.dataset.tab;
  const tab = open ?? new URLSearchParams(location.search).get("tab") ?? "result";
  const address = `${step.querySelector("[data-detail]").getAttribute("href")}?tab=${encodeURIComponent(tab)}`;
  await htmx.ajax("GET", address, { target: panel, swap: "innerHTML" }).catch(() => {}); // `notLoaded` says so
  if (isChosen) announcer.textContent = panel.querySelector("h2")?.textContent ?? "";
  if (!wide.matches && panel.popover) showSheet();
  then?.();
}

// Says that the details couldn't be loaded, and offers to try again.
function notLoaded({ detail }) {
  if (detail.target !== panel) return;
  const text = document.createElement("p");
  const again = document.createElement("button");
  Object.assign(text, { textContent: panel.dataset.failed, role: "alert" });
  Object.assign(again, { type: "button", className: "button", textContent: panel.dataset.again });
  again.dataset.loadAgain = "";
  const note = document.createElement("div");
  note.className = "panel-failed";
  note.append(text, again);
  panel.replaceChildren(note);
}

function showSheet() {
  if (!panel.matches(":popover-open")) panel.showPopover();
  if (!history.state?.sheet) history.pushState({ sheet: true }, "");
  panel.scrollTop = 0;
  panel.querySelector("h2")?.focus();
}

// Leaves the details: a sheet closes, and the focus returns to the row.
function close() {
  if (panel.matches(":popover-open")) return panel.hidePopover();
  selected()?.querySelector("summary").focus();
}

function closed({ newState }) {
  if (newState !== "closed") return;
  selected()?.querySelector("summary").focus();
  if (!history.state?.sheet) return;
  isClosing = true;
  history.back();
}

// Back closes the sheet. The step that was open before it doesn't open again.
function wentBack() {
  const isLeft = panel.matches(":popover-open") && !history.state?.sheet;
  isClosing ||= isLeft;
  if (isLeft) panel.hidePopover();
  setTimeout(closedForGood); // after `hashchange`, and after the browser has moved the focus
}

function closedForGood() {
  if (isClosing) selected()?.querySelector("summary").focus({ preventScroll: true });
  isClosing = false;
}
