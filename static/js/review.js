// Reviewing by keyboard: in the queue, and on a run's page.

import { isComposing } from "./keys.js";
import { enhanceProse } from "./prose.js";

const announcer = document.getElementById("announcer");
const cases = () => [...document.querySelectorAll(".case")];

// First, because a run's page has other shortcuts for these keys.
document.addEventListener("keydown", pressed, true);
document.addEventListener("htmx:beforeSwap", keepTyped);
document.addEventListener("htmx:afterSwap", judged);
document.addEventListener("htmx:responseError", failed);
document.addEventListener("htmx:sendError", failed);
enhanceProse();

function pressed(event) {
  const { key, target } = event;
  if (isComposing(event) || event.altKey || target.closest?.("dialog")) return;
  const field = target.closest?.("input, textarea, select");
  if (field) return field.closest(".judge") && inField(event, field);
  if (event.ctrlKey || event.metaKey) return;
  const act = { j: () => move(1), k: () => move(-1) }[key.toLowerCase()] ?? (() => reach(key.toLowerCase()));
  if (act() === false) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

function inField(event, field) {
  if (event.key === "Escape") leave(field);
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
}

function leave(field) {
  field.blur();
  field.closest(".case")?.focus({ preventScroll: true });
}

// Gives a verdict or focuses a field; returns false if the key has neither.
function reach(key) {
  if (!/^[1-4acf]$/.test(key)) return false;
  if (!current()) return move(1); // never judge a run that wasn't selected
  const there =
    document.querySelector(`#panel[data-chosen] .of-step [data-key="${key}"]`) ??
    current().querySelector(`.judge:not(.of-step) [data-key="${key}"]`);
  if (!there) return false;
  if (there.matches("button")) return there.click();
  const details = there.closest("details");
  if (details) details.open = true;
  there.focus();
}

function current() {
  return document.activeElement.closest(".case") ?? document.querySelector("main:has(.judge):not(:has(.case))");
}

function move(by) {
  const all = cases();
  if (!all.length) return false;
  const at = all.indexOf(document.activeElement.closest(".case"));
  go(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by]);
}

function go(next) {
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "start" });
}

// Text typed in another form of the same panel isn't lost.
function keepTyped({ target, detail }) {
  if (!target.matches?.(".judge")) return;
  const sent = detail.requestConfig?.elt;
  const typed = [...target.querySelectorAll("textarea, input:not([type=hidden])")].filter(
    (field) => field.id && field.value !== field.defaultValue && !sent?.contains(field),
  );
  const restore = () => typed.forEach(writeAgain);
  if (typed.length) document.addEventListener("htmx:afterSwap", restore, { once: true });
}

function writeAgain({ id, value }) {
  const field = document.getElementById(id);
  if (!field) return;
  field.value = value;
  const details = field.closest("details");
  if (details) details.open = true;
}

// A decided case stays visible, and the next open one is selected. Otherwise the position
// stays, if the focused element is gone.
function judged({ detail: { requestConfig, elt } }) {
  const judge = document.getElementById(elt.id);
  if (!judge?.matches(".judge")) return;
  const here = judge.closest(".case");
  const isDecided = requestConfig?.path.endsWith("/verdict/") && !judge.querySelector(".problem").textContent;
  if (isDecided) decided(here, judge.querySelector(".verdict[aria-pressed=true]"));
  else if (document.activeElement === document.body) (here ?? judge).focus({ preventScroll: true });
}

// On a run's own page, the verdict is displayed where it was given.
function decided(here, verdict) {
  const word = verdict.querySelector("span").textContent;
  if (here) return next(here, word);
  announcer.textContent = announcer.dataset.decided.replace("{}", word);
  verdict.scrollIntoView({ block: "nearest" });
  verdict.focus({ preventScroll: true });
}

function next(here, verdict) {
  const all = cases();
  const open = all.slice(all.indexOf(here) + 1).find((other) => other.querySelector('.judge[data-verdict=""]'));
  announcer.textContent = announcer.dataset.decided.replace("{}", verdict);
  if (!open) announcer.textContent += ` ${announcer.dataset.done}`;
  go(open ?? here);
}

function failed({ target }) {
  const problem = target.closest?.(".judge")?.querySelector(".problem");
  if (problem) problem.textContent = problem.dataset.failed;
}
