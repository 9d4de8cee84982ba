// A page that nobody looks at does not ask how many calls wait; it asks when it is looked at.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.matches(".to-approvals")) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) htmx.trigger(document.body, "approvals");
});
