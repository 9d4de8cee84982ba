// What somebody thinks of an answer. The server's reply shows what is kept, and so does a frame.

export function rate() {
  document.addEventListener("htmx:oobBeforeSwap", leaveAlone);
  document.addEventListener("htmx:afterSettle", show);
  document.addEventListener("htmx:responseError", failed);
  document.addEventListener("htmx:sendError", failed);
}

// Where somebody is at it just now, the reply has shown it already; a frame would take the focus.
function leaveAlone({ target, detail }) {
  if (target.matches(".rating") && target.contains(document.activeElement)) detail.shouldSwap = false;
}

// What is asked stands at the end of the page, where the composer would hide it.
function show({ target }) {
  if (target.matches(".rating")) target.querySelector(".reasons[open]")?.scrollIntoView({ block: "nearest" });
}

function failed({ target }) {
  const problem = target.closest?.(".rating")?.querySelector(".problem");
  if (problem) problem.textContent = problem.dataset.failed;
}
