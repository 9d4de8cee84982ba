// Follows new text only while the reader is at the end.

const END_MARGIN = 96;
const page = document.scrollingElement;
const jumpButton = document.getElementById("jump");
let isFollowing = false;
// Earlier messages are loaded shortly before the reader reaches them.
const observer = new IntersectionObserver(
  (entries) => entries.forEach(({ isIntersecting, target }) => isIntersecting && target.click()),
  { rootMargin: "800px 0px 0px" },
);

export function startScrolling() {
  document.addEventListener("htmx:wsBeforeMessage", () => (isFollowing = isAtEnd()));
  document.addEventListener("htmx:wsAfterMessage", () => (isFollowing ? scrollToEnd() : updateJump()));
  addEventListener("scroll", updateJump, { passive: true });
  addEventListener("resize", updateJump, { passive: true });
  jumpButton.addEventListener("click", () => scrollToEnd("smooth"));
  document.addEventListener("htmx:beforeSwap", onBeforeSwap);
  document.addEventListener("htmx:load", observeEarlier);
  // After a reload the browser restores the reader's position.
  const [navigation] = performance.getEntriesByType("navigation");
  const isReturning = ["reload", "back_forward"].includes(navigation?.type);
  if (!location.hash && !isReturning && !isStarting()) scrollToEnd();
  observeEarlier();
  updateJump();
}

export function scrollToEnd(behavior = "instant") {
  page.scrollTo({ top: page.scrollHeight, behavior });
  isFollowing = true;
}

// Missed messages are loaded on the reader's request.
function observeEarlier() {
  observer.disconnect();
  const link = document.querySelector("#messages > .earlier:not([data-gap])");
  if (link) observer.observe(link);
}

// Earlier messages are inserted above without moving what is being read.
function onBeforeSwap({ target }) {
  if (!target.matches?.(".earlier")) return;
  const distanceFromEnd = page.scrollHeight - page.scrollTop;
  const restore = () => page.scrollTo({ top: page.scrollHeight - distanceFromEnd, behavior: "instant" });
  document.addEventListener("htmx:afterSettle", restore, { once: true });
}

function isAtEnd() {
  return page.scrollHeight - page.scrollTop - page.clientHeight < END_MARGIN;
}

function updateJump() {
  jumpButton.hidden = isAtEnd() || isStarting();
}

// A new chat begins with its heading, also on a low screen.
function isStarting() {
  return Boolean(document.querySelector(".chat-main.starting"));
}
