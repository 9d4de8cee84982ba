// Decisions about calls: in a chat, on a run's page, and in the inbox.

import { isComposing } from "./keys.js";
import { markPlanChanged, startPlans } from "./plans.js";
import { hasTouchKeyboard } from "./touch.js";

let decidedId = ""; // the approval with the focus when it was decided

export function startDecisions() {
  document.addEventListener("input", ({ target }) => markChanged(target));
  document.addEventListener("htmx:beforeRequest", onBeforeRequest);
  document.addEventListener("htmx:afterRequest", onAfterRequest);
  document.addEventListener("htmx:oobAfterSwap", onAfterSwap);
  document.addEventListener("keydown", onKeydown);
  document.addEventListener("click", onClick);
  startPlans();
}

// Whether the button approves the agent's arguments or the user's.
export function markChanged(field) {
  markPlanChanged(field);
  if (field.dataset?.original === undefined) return;
  const approval = field.closest(".approval");
  const fields = [...approval.querySelectorAll("[data-original]")];
  approval.toggleAttribute("data-changed", fields.some((other) => other.value !== other.dataset.original));
}

// Reject opens a field for the reason, which isn't required.
function onClick({ target }) {
  const rejecting = target.closest?.(".rejecting > summary")?.parentElement;
  if (!rejecting || rejecting.open) return;
  requestAnimationFrame(() => rejecting.closest(".approval").querySelector(".reject-form textarea").focus());
}

function onKeydown(event) {
  if (event.key === "Escape") return closeReason(event);
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || isComposing(event)) return;
  const field = event.target.closest?.("[data-sends]");
  field?.closest(".comments, .reject-form, .approval").querySelector("[data-send]").click();
}

function closeReason({ target }) {
  const form = target.closest?.(".reject-form");
  const rejecting = form?.closest(".approval").querySelector(".rejecting");
  if (!rejecting) return;
  rejecting.open = false;
  rejecting.querySelector("summary").focus();
}

function onBeforeRequest({ target }) {
  const approval = target.closest?.(".approval");
  if (approval?.contains(document.activeElement)) decidedId = approval.id;
}

// A frame that removes the pressed button comes before its response, which is then lost.
function onAfterSwap() {
  if (!decidedId || document.activeElement !== document.body) return;
  const current = document.getElementById(decidedId);
  if (current?.dataset.verdict !== "waiting") focusNext(current ?? document.body);
}

// Looked up by the pressed button: a frame may have replaced it by now.
function onAfterRequest({ detail }) {
  const approval = detail.requestConfig?.elt?.closest(".approval");
  if (!approval) return;
  const { status } = detail.xhr;
  if (status === 0 || status >= 400) approval.querySelector(".problem").textContent = approval.dataset.failed;
  if (status === 204) focusNext(approval);
}

// Never focus a button: a second Enter would decide something unread.
function focusNext(approval) {
  decidedId = "";
  const focused = document.activeElement;
  if (focused !== document.body && !approval.contains(focused)) return;
  const current = document.getElementById(approval.id) ?? approval;
  const next = [...document.querySelectorAll(".approval[data-verdict=waiting]")].find(
    (other) => current.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING,
  );
  if (next) return focusElement(next.closest("article.waiting") ?? next);
  const composer = hasTouchKeyboard() ? null : document.getElementById("text");
  const field = composer ?? current.closest(".step")?.querySelector("summary");
  if (field) field.focus({ preventScroll: true });
  else focusElement(document.querySelector("h1"));
}

function focusElement(element) {
  element.tabIndex = -1;
  element.focus();
}
