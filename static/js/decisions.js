// What a person decides about a call: on the page of a chat, of a run, and in the inbox.

import { markPlan, start as plan } from "./plans.js";

export function start() {
  document.addEventListener("input", ({ target }) => mark(target));
  document.addEventListener("htmx:afterRequest", told);
  document.addEventListener("keydown", typed);
  plan();
}

// Whether the button approves what the agent asked for, or what the person wrote instead.
export function mark(field) {
  markPlan(field);
  if (field.dataset?.original === undefined) return;
  field.closest(".approval").toggleAttribute("data-changed", field.value !== field.dataset.original);
}

function typed(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
  const field = event.target.closest?.("[data-sends]");
  field?.closest(".comments, .approval").querySelector("[data-send]").click();
}

function told({ target, detail }) {
  const approval = target.closest?.(".approval");
  if (!approval) return;
  const { status } = detail.xhr;
  if (status === 0 || status >= 400) approval.querySelector(".problem").textContent = approval.dataset.failed;
  if (status === 204) focusNext(approval);
}

function focusNext(approval) {
  const others = [...document.querySelectorAll(".approval[data-verdict=waiting]")];
  const next = others.find((other) => other !== approval)?.querySelector(".buttons button");
  (next ?? document.getElementById("text"))?.focus({ preventScroll: !next });
}
