// Reviewing by keyboard: in the queue, and on a run's page.

import { isComposing } from "./keys.js";
import { startProse } from "./prose.js";

const announcer = document.getElementById("announcer");
const cases = () => [...document.querySelectorAll(".case")];

// First, because a run's page has other shortcuts for these keys.
document.addEventListener("keydown", onKeydown, true);
document.addEventListener("htmx:beforeSwap", onBeforeSwap);
document.addEventListener("htmx:afterSwap", onAfterSwap);
document.addEventListener("htmx:responseError", onRequestFailed);
document.addEventListener("htmx:sendError", onRequestFailed);
startProse();

function onKeydown(event) {
  const { key, target } = event;
  if (isComposing(event) || event.altKey || target.closest?.("dialog")) return;
  const field = target.closest?.("input, textarea, select");
  if (field) {
    if (!field.closest(".judge")) return;
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
    if (key !== "Escape") return;
    field.blur();
    field.closest(".case")?.focus({ preventScroll: true });
    return;
  }
  if (event.ctrlKey || event.metaKey) return;
  const step = { j: 1, k: -1 }[key.toLowerCase()];
  if ((step ? moveSelection(step) : useControl(key.toLowerCase())) === false) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

// Gives a verdict or focuses a field; returns false if the key has neither.
function useControl(key) {
  if (!/^[1-4acf]$/.test(key)) return false;
  if (!currentCase()) return moveSelection(1); // never judge a run that wasn't selected
  const control =
    document.querySelector(`#panel[data-chosen] .of-step [data-key="${key}"]`) ??
    currentCase().querySelector(`.judge:not(.of-step) [data-key="${key}"]`);
  if (!control) return false;
  openDetails(control);
  if (control.matches("button")) control.click();
  else control.focus();
}

function currentCase() {
  return document.activeElement.closest(".case") ?? document.querySelector("main:has(.judge):not(:has(.case))");
}

function moveSelection(step) {
  const allCases = cases();
  if (!allCases.length) return false;
  const index = allCases.indexOf(document.activeElement.closest(".case"));
  focusCase(allCases[index < 0 ? (step > 0 ? 0 : allCases.length - 1) : index + step]);
}

function focusCase(target) {
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "start" });
}

// Text typed in another form of the same panel isn't lost.
function onBeforeSwap({ target, detail }) {
  if (!target.matches?.(".judge")) return;
  const sent = detail.requestConfig?.elt;
  const typed = [...target.querySelectorAll("textarea, input:not([type=hidden])")].filter(
    (field) => field.id && field.value !== field.defaultValue && !sent?.contains(field),
  );
  const restore = () => {
    for (const { id, value } of typed) {
      const field = document.getElementById(id);
      if (!field) continue;
      field.value = value;
      openDetails(field);
    }
  };
  if (typed.length) document.addEventListener("htmx:afterSwap", restore, { once: true });
}

function openDetails(field) {
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

// A decided case stays visible, and the next open one is selected. Otherwise the position
// stays, if the focused element is gone.
function onAfterSwap({ detail: { requestConfig, elt } }) {
  const judge = document.getElementById(elt.id);
  if (!judge?.matches(".judge")) return;
  const current = judge.closest(".case");
  const isDecided = requestConfig?.path.endsWith("/verdict/") && !judge.querySelector(".problem").textContent;
  if (!isDecided) {
    if (document.activeElement === document.body) (current ?? judge).focus({ preventScroll: true });
    return;
  }
  const verdict = judge.querySelector(".verdict[aria-pressed=true]");
  announcer.textContent = announcer.dataset.decided.replace("{}", verdict.querySelector("span").textContent);
  if (!current) {
    // On a run's own page, the verdict is displayed where it was given.
    verdict.scrollIntoView({ block: "nearest" });
    verdict.focus({ preventScroll: true });
    return;
  }
  const allCases = cases();
  const open = allCases.slice(allCases.indexOf(current) + 1).find((other) => other.querySelector('.judge[data-verdict=""]'));
  if (!open) announcer.textContent += ` ${announcer.dataset.done}`;
  focusCase(open ?? current);
}

function onRequestFailed({ target }) {
  const problem = target.closest?.(".judge")?.querySelector(".problem");
  if (problem) problem.textContent = problem.dataset.failed;
}
