// Ratings of answers. The server's response shows what is saved, and so does a frame.

export function rate() {
  document.addEventListener("htmx:oobBeforeSwap", leaveAlone);
  document.addEventListener("htmx:afterSettle", show);
  document.addEventListener("htmx:responseError", failed);
  document.addEventListener("htmx:sendError", failed);
}

// While the user is rating, the response already shows it; a frame would take the focus.
function leaveAlone({ target, detail }) {
  if (target.matches(".rating") && target.contains(document.activeElement)) detail.shouldSwap = false;
}

// The reasons are at the end of the page, where the composer would hide them.
function show({ target }) {
  if (target.matches(".rating")) target.querySelector(".reasons[open]")?.scrollIntoView({ block: "nearest" });
}

function failed({ target }) {
  const problem = target.closest?.(".rating")?.querySelector(".problem");
  if (problem) problem.textContent = problem.dataset.failed;
}
