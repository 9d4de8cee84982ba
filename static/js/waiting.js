// A hidden page doesn't poll the number of approvals; it asks when it becomes visible.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.target.matches(".to-approvals")) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) htmx.trigger(document.body, "approvals");
});
