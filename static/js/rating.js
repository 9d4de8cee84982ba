// Ratings of answers. The server's response shows what is saved, and so does a frame.

export function startRatings() {
  document.addEventListener("htmx:oobBeforeSwap", onBeforeSwap);
  document.addEventListener("htmx:afterSettle", onAfterSettle);
  document.addEventListener("htmx:responseError", onRequestFailed);
  document.addEventListener("htmx:sendError", onRequestFailed);
}

// While the user is rating, the response already shows it; a frame would take the focus.
function onBeforeSwap({ target, detail }) {
  if (target.matches(".rating") && target.contains(document.activeElement)) detail.shouldSwap = false;
}

// The reasons are at the end of the page, where the composer would hide them.
function onAfterSettle({ target }) {
  if (target.matches(".rating")) target.querySelector(".reasons[open]")?.scrollIntoView({ block: "nearest" });
}

function onRequestFailed({ target }) {
  const problem = target.closest?.(".rating")?.querySelector(".problem");
  if (problem) problem.textContent = problem.dataset.failed;
}
