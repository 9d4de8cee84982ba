import { watch } from "./connection.js";
import { isComposing } from "./keys.js";
import { start } from "./run.js";

// Next to the rows is a panel for details; on a narrow page the row itself opens.
const wide = matchMedia("(min-width: 75rem)");
const panel = document.getElementById("panel");
const announcer = document.getElementById("announcer");
const PAUSE = 120;
let soon;
let later; // waits for rows that a long run loads later

start();
watch();
openTarget();
addEventListener("hashchange", openTarget);
document.addEventListener("keydown", pressed);
document.addEventListener("click", clicked);
document.addEventListener("htmx:oobAfterSwap", chooseAgain);
document.addEventListener("htmx:oobAfterSwap", judgeAtTheEnd);
document.addEventListener("htmx:afterSettle", settled);

function openTarget() {
  const step = document.getElementById(location.hash.slice(1));
  if (!step && location.hash.startsWith("#step-")) return readOn(openTarget);
  if (!step?.matches(".step")) return;
  if (wide.matches) choose(step);
  else step.querySelector("details").open = true;
  step.scrollIntoView({ block: "center" });
}

function clicked(event) {
  const opener = event.target.closest("[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  if (event.target.matches("dialog")) event.target.close();
  if (isPlain(event) && goTo(event.target.closest('a[href*="#step-"]:not(.more-steps a)'))) event.preventDefault();
  const summary = event.target.closest(".step > details > summary");
  if (!summary || !wide.matches || event.detail === 0) return;
  event.preventDefault();
  choose(summary.closest(".step"));
}

// Goes to a step on this page without leaving it or its filter.
function goTo(link) {
  if (!link || link.pathname !== location.pathname) return false;
  history.replaceState(null, "", link.hash);
  openTarget();
  return true;
}

function isPlain(event) {
  return event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
}

// Loads the remaining rows, then runs what needs them.
function readOn(then) {
  const more = document.querySelector(".more-steps a");
  if (!more) return;
  later = then;
  htmx.trigger(more, "click");
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
  e: () => move(1, "[data-status=failed], [data-status=blocked], [data-status=unknown]"),
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

function current() {
  const focused = document.activeElement.closest(".step");
  return focused ?? document.querySelector("summary[aria-current]")?.closest(".step");
}

// Selects the next row, or the next of a kind, wrapping around.
function move(by, kind = "") {
  const rows = [...document.querySelectorAll(".step")];
  const at = rows.indexOf(current());
  const order = by > 0 ? rows.slice(at + 1) : rows.slice(0, at < 0 ? undefined : at).reverse();
  const further = order.find((row) => row.matches(kind || "*"));
  if (!further && by > 0 && document.querySelector(".more-steps")) return readOn(() => move(by, kind));
  const next = further ?? (kind ? rows.find((row) => row.matches(kind)) : undefined);
  if (!next) return;
  next.querySelector("summary").focus();
  next.scrollIntoView({ block: "nearest" });
  if (wide.matches && !panel.hidden) choose(next);
}

function toggle() {
  const details = current()?.querySelector("details");
  if (details) details.open = !details.open;
}

function read() {
  const step = current();
  if (!step) return;
  if (!wide.matches) return toggle();
  choose(step, () => panel.querySelector("h2")?.focus());
}

function choose(step, then) {
  for (const old of document.querySelectorAll("summary[aria-current]")) {
    old.removeAttribute("aria-current");
  }
  step.querySelector("summary").setAttribute("aria-current", "true");
  panel.hidden = false;
  history.replaceState(null, "", `#${step.id}`);
  clearTimeout(soon);
  soon = setTimeout(() => load(step, then), PAUSE);
}

// A live run replaces its rows; the selected one stays selected.
function chooseAgain() {
  if (panel.hidden || document.querySelector("summary[aria-current]")) return;
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
  const select = { target: review, swap: "outerHTML", select: "#review" };
  htmx.ajax("GET", location.pathname, select);
}

async function load(step, then) {
  const tab = panel.querySelector(".tabs [aria-current]")?.dataset.tab ?? "result";
  const address = `${step.querySelector("[data-detail]").getAttribute("href")}?tab=${tab}`;
  await htmx.ajax("GET", address, { target: panel, swap: "innerHTML" });
  announcer.textContent = panel.querySelector("h2")?.textContent ?? "";
  then?.();
}

function close() {
  const step = current();
  panel.hidden = true;
  panel.replaceChildren();
  step?.querySelector("summary").removeAttribute("aria-current");
  step?.querySelector("summary").focus();
}
