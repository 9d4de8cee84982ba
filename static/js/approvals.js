import { start } from "./decisions.js";

start();

// A decided call leaves the list; the link to the list asks anew how many there are.
document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  const card = target.closest?.(".approvals .waiting");
  if (!card || detail.xhr.status !== 204) return;
  card.remove();
  htmx.trigger(document.body, "approvals");
  if (!document.querySelector(".approvals .waiting")) location.reload();
});
