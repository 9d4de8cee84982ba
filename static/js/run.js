// What a run needs on any page: clocks, open rows, copy buttons.

import { mark, start as decide } from "./decisions.js";
import { showEvidence } from "./evidence.js";
import { keepPlan } from "./plans.js";
import { playRecordings } from "./player.js";
import { enhanceProse } from "./prose.js";

const root = document.documentElement;
const seen = new WeakMap();
const runs = document.getElementsByClassName("run"); // the browser keeps this list until the page changes
const SHOWN = ".run pre:not(.prose pre.code), .payload";

export function start() {
  decide();
  setInterval(tick, 100);
  document.addEventListener("htmx:oobBeforeSwap", keepOpen);
  document.addEventListener("htmx:oobAfterSwap", countWaiting);
  document.addEventListener("htmx:load", ({ target }) => addCopyButtons(target));
  document.addEventListener("click", copy);
  document.addEventListener("change", ({ target }) => {
    if (target.name === "density") openSteps(document, target.value === "everything");
  });
  addCopyButtons(document);
  enhanceProse();
  showEvidence();
  playRecordings();
  if (root.dataset.density === "everything") openSteps(document, true);
}

export function openSteps(within, open) {
  for (const details of within.querySelectorAll(".step > details")) details.open = open;
}

// A frame has the server's row; only the page knows whether it is open.
export function keepOpen({ detail: { fragment } }) {
  for (const details of fragment.querySelectorAll(".step > details")) {
    const old = document.querySelector(`#${CSS.escape(details.parentElement.id)} > details`);
    details.open = old ? old.open : root.dataset.density === "everything";
  }
  for (const part of fragment.querySelectorAll(".approval, .comments")) keepTyped(part);
}

// A comment or decision being typed is never overwritten.
function keepTyped(part) {
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
    mark(same);
  }
  const change = part.querySelector(".change:not(.plan-edit)");
  if (change) change.open = old?.querySelector(".change")?.open ?? false;
}

// A run sent as a whole has ended, waits or was resumed, so the link updates its count; so does
// the step of a tool that asks.
function countWaiting({ detail: { target } }) {
  if (target.matches(".run") || target.querySelector?.(".elicitation")) htmx.trigger(document.body, "approvals");
}

function tick() {
  const now = performance.now();
  for (const run of runs) {
    if (run.hasAttribute("data-status") && !run.hasAttribute("data-live")) continue; // a long chat has thousands of elements
    for (const clock of run.querySelectorAll("[data-elapsed-ms]")) {
      if (!seen.has(clock)) seen.set(clock, now - Number(clock.dataset.elapsedMs));
      const text = words((now - seen.get(clock)) / 1000);
      if (clock.textContent !== text) clock.textContent = text;
    }
  }
}

export function words(seconds) {
  const { seconds: short, minutes: long } = document.body.dataset;
  if (seconds < 59.95) return short.replace("{}", seconds.toFixed(1));
  const whole = Math.round(seconds);
  return long
    .replace("{}", Math.floor(whole / 60))
    .replace("{}", String(whole % 60).padStart(2, "0"));
}

function addCopyButtons(within) {
  const blocks = within.matches?.("pre") ? [within] : within.querySelectorAll(SHOWN);
  for (const block of blocks) {
    if (!block.matches(SHOWN) || block.querySelector(".copy-code")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-code icon-button";
    button.setAttribute("aria-label", document.body.dataset.copyLabel);
    button.innerHTML = '<svg class="icon" aria-hidden="true"><use href="#i-copy"/></svg>';
    block.append(button);
  }
}

async function copy({ target }) {
  const button = target.closest?.("[data-copy], [data-copy-from], .copy-code");
  if (!button) return;
  await write(await wanted(button));
  button.dataset.copied = "";
  button.querySelector("use").setAttribute("href", "#i-done");
  setTimeout(() => {
    delete button.dataset.copied;
    button.querySelector("use").setAttribute("href", "#i-copy");
  }, 1600);
}

// Truncated text is copied in full.
async function wanted(button) {
  const { copy, copyFrom } = button.dataset;
  if (copyFrom) return whole(copyFrom);
  if (copy) return document.getElementById(copy).content.textContent;
  return (button.parentElement.querySelector("code") ?? button.parentElement).textContent;
}

export async function whole(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: HTTP ${answer.status}`);
  return answer.text();
}

// Plain http from another machine has no clipboard API.
export async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
