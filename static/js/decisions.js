// Decisions about calls: in a chat, on a run's page, and in the inbox.

import { isComposing } from "./keys.js";
import { markPlan, start as plan } from "./plans.js";
import { hasTouchKeyboard } from "./touch.js";

let decided = ""; // the approval with the focus when it was decided

export function start() {
  document.addEventListener("input", ({ target }) => mark(target));
  document.addEventListener("htmx:beforeRequest", deciding);
  document.addEventListener("htmx:afterRequest", told);
  document.addEventListener("htmx:oobAfterSwap", shown);
  document.addEventListener("keydown", typed);
  plan();
}

// Whether the button approves the agent's arguments or the user's.
export function mark(field) {
  markPlan(field);
  if (field.dataset?.original === undefined) return;
  field.closest(".approval").toggleAttribute("data-changed", field.value !== field.dataset.original);
}

function typed(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || isComposing(event)) return;
  const field = event.target.closest?.("[data-sends]");
  field?.closest(".comments, .approval").querySelector("[data-send]").click();
}

function deciding({ target }) {
  const approval = target.closest?.(".approval");
  if (approval?.contains(document.activeElement)) decided = approval.id;
}

// A frame that removes the pressed button comes before its response, which is then lost.
function shown() {
  if (!decided || document.activeElement !== document.body) return;
  const here = document.getElementById(decided);
  if (here?.dataset.verdict !== "waiting") focusNext(here ?? document.body);
}

// Looked up by the pressed button: a frame may have replaced it by now.
function told({ detail }) {
  const approval = detail.requestConfig?.elt?.closest(".approval");
  if (!approval) return;
  const { status } = detail.xhr;
  if (status === 0 || status >= 400) approval.querySelector(".problem").textContent = approval.dataset.failed;
  if (status === 204) focusNext(approval);
}

// Never focus a button: a second Enter would decide something unread.
function focusNext(approval) {
  decided = "";
  const focused = document.activeElement;
  if (focused !== document.body && !approval.contains(focused)) return;
  const here = document.getElementById(approval.id) ?? approval;
  const next = [...document.querySelectorAll(".approval[data-verdict=waiting]")].find((other) => follows(other, here));
  if (next) stand(next.closest("article.waiting") ?? next);
  else rest(here);
}

function follows(other, here) {
  return here.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
}

function rest(here) {
  const composer = hasTouchKeyboard() ? null : document.getElementById("text");
  const field = composer ?? here.closest(".step")?.querySelector("summary");
  if (field) field.focus({ preventScroll: true });
  else stand(document.querySelector("h1"));
}

function stand(place) {
  place.tabIndex = -1;
  place.focus();
}
