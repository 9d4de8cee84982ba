// The inbox of calls that wait for a decision.

import { startDecisions } from "./decisions.js";

startDecisions();

// A decided call leaves the list, and the link updates its count. New approvals appear at once;
// a hidden page doesn't poll.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.matches("#newly-asked")) event.preventDefault();
});
document.addEventListener("htmx:oobAfterSwap", ({ detail: { target } }) => {
  const section = target.closest(".approval-list");
  if (!section) return;
  section.hidden = false;
  document.querySelector(".approvals .nothing")?.remove();
  htmx.trigger(document.body, "approvals");
});

document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  const card = target.closest?.(".approvals .waiting");
  if (!card || detail.xhr.status !== 204) return;
  card.remove();
  htmx.trigger(document.body, "approvals");
  if (!document.querySelector(".approvals .waiting")) location.reload();
});
