// What a run needs on any page: clocks, open rows, copy buttons.

import { copyAtOnce, copyText } from "./clipboard.js";
import { markChanged, startDecisions } from "./decisions.js";
import { startEvidence } from "./evidence.js";
import { keepPlan } from "./plans.js";
import { startPlayer } from "./player.js";
import { startProse } from "./prose.js";

const root = document.documentElement;
const startTimes = new WeakMap();
const runs = document.getElementsByClassName("run"); // the browser keeps this list until the page changes
const COPYABLE = ".run pre:not(.prose pre.code), .payload";

export function startRuns() {
  startDecisions();
  setInterval(updateClocks, 100);
  document.addEventListener("htmx:oobBeforeSwap", keepOpen);
  document.addEventListener("htmx:oobAfterSwap", onOobAfterSwap);
  document.addEventListener("htmx:load", ({ target }) => {
    if (root.dataset.steps === "open") openRuns(target, true);
  });
  startCopyButtons();
  document.addEventListener("click", onContactClick);
  document.addEventListener("click", ({ target }) => {
    const line = target.closest?.(".run-steps > summary");
    if (line) line.parentElement.dataset.chosen = "";
  });
  document.addEventListener("change", ({ target }) => {
    if (target.name === "steps") openRuns(document, target.checked);
  });
  addEventListener("hashchange", openLinkedStep);
  startProse();
  startEvidence();
  startPlayer();
  if (root.dataset.steps === "open") openRuns(document, true);
  openLinkedStep();
}

export function startCopyButtons() {
  document.addEventListener("htmx:load", ({ target }) => addCopyButtons(target));
  document.addEventListener("click", onCopyClick);
  addCopyButtons(document);
}

// The steps of live runs are open anyway.
export function openRuns(within, isOpen) {
  for (const steps of within.querySelectorAll(".run:not([data-live]) > .run-steps")) {
    steps.open = isOpen;
    delete steps.dataset.chosen;
  }
}

function openLinkedStep() {
  const step = location.hash.startsWith("#step-") && document.getElementById(location.hash.slice(1));
  const steps = step && step.closest(".run-steps:not([open])");
  if (!steps) return;
  steps.open = true;
  steps.dataset.chosen = "";
  step.scrollIntoView({ block: "center" });
}

// A frame has the server's rows; only the page knows which of them its user opened or closed.
export function keepOpen({ detail: { fragment } }) {
  for (const details of fragment.querySelectorAll(".step > details")) {
    const old = document.querySelector(`#${CSS.escape(details.parentElement.id)} > details`);
    if (old) details.open = old.open;
  }
  for (const steps of fragment.querySelectorAll(".run-steps")) {
    const old = document.querySelector(`#${CSS.escape(steps.parentElement.id)} > .run-steps`);
    if (old?.dataset.chosen !== undefined) {
      steps.open = old.open;
      steps.dataset.chosen = "";
    } else if (root.dataset.steps === "open") steps.open = true;
  }
  for (const part of fragment.querySelectorAll(".approval, .comments")) restoreTyped(part);
}

// A comment or decision being typed is never overwritten.
function restoreTyped(part) {
  const old = document.getElementById(part.id);
  if (part.matches(".for-plan")) keepPlan(part);
  // The server's answer to what was typed has it already.
  if (part.matches(".elicitation[data-typed]")) return;
  for (const field of old?.querySelectorAll("textarea, select, input:not([type=hidden])") ?? []) {
    if (field.closest(".plan-edit")) continue;
    const isChoice = field.matches("[type=radio], [type=checkbox]");
    const value = isChoice ? `[value="${CSS.escape(field.value)}"]` : "";
    const same = part.querySelector(`[name="${field.name}"]${value}`);
    if (!same) continue;
    if (isChoice) same.checked = field.checked;
    else same.value = field.value;
    markChanged(same);
  }
  for (const details of part.querySelectorAll(":is(.change, .rejecting, .as-json)[id]")) {
    details.open = document.getElementById(details.id)?.open ?? details.open;
  }
}

// A run sent as a whole has ended, waits or was resumed, so the link updates its count; so does
// the step of a tool that asks.
function onOobAfterSwap({ detail: { target } }) {
  if (target.matches(".run") || target.querySelector?.(".elicitation")) htmx.trigger(document.body, "approvals");
}

function updateClocks() {
  const now = performance.now();
  for (const run of runs) {
    if (run.hasAttribute("data-status") && !run.hasAttribute("data-live")) continue; // a long chat has thousands of elements
    for (const clock of run.querySelectorAll("[data-elapsed-ms]")) {
      if (!startTimes.has(clock)) startTimes.set(clock, now - Number(clock.dataset.elapsedMs));
      const text = formatDuration((now - startTimes.get(clock)) / 1000);
      if (clock.textContent !== text) clock.textContent = text;
    }
  }
}

export function formatDuration(seconds) {
  const { seconds: secondsTemplate, minutes: minutesTemplate } = document.body.dataset;
  if (seconds < 59.95) return secondsTemplate.replace("{}", seconds.toFixed(1));
  const wholeSeconds = Math.round(seconds);
  return minutesTemplate
    .replace("{}", Math.floor(wholeSeconds / 60))
    .replace("{}", String(wholeSeconds % 60).padStart(2, "0"));
}

function addCopyButtons(within) {
  const blocks = within.matches?.("pre") ? [within] : within.querySelectorAll(COPYABLE);
  for (const block of blocks) {
    if (!block.matches(COPYABLE) || block.querySelector(".copy-code")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-code icon-button";
    button.setAttribute("aria-label", document.body.dataset.copyLabel);
    button.innerHTML = '<svg class="icon" aria-hidden="true"><use href="#i-copy"/></svg>';
    block.append(button);
  }
}

async function onCopyClick({ target }) {
  const button = target.closest?.("[data-copy], [data-copy-from], .copy-code");
  if (!button) return;
  await copyText(await textToCopy(button));
  button.dataset.copied = "";
  button.querySelector("use").setAttribute("href", "#i-done");
  setTimeout(() => {
    delete button.dataset.copied;
    button.querySelector("use").setAttribute("href", "#i-copy");
  }, 1600);
}

// What a ticket form can't be given with its URL is pasted there.
function onContactClick({ target }) {
  const link = target.closest?.("[data-contact]");
  if (!link) return;
  copyAtOnce(link.dataset.contact);
  link.dataset.copied = "";
  link.focus();
}

// Truncated text is copied in full.
async function textToCopy(button) {
  const { copy: templateId, copyFrom } = button.dataset;
  if (copyFrom) return fetchText(copyFrom);
  if (templateId) return document.getElementById(templateId).content.textContent;
  return (button.parentElement.querySelector("code") ?? button.parentElement).textContent;
}

// The text of a message; a long one is on the page in part.
export async function questionText(question) {
  const link = question.querySelector("[data-whole]");
  return link ? fetchText(link.href) : question.querySelector("p").textContent;
}

export async function fetchText(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return response.text();
}
