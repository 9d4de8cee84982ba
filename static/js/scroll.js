// Follows new text only while the reader is at the end.

const NEAR = 96;
const page = document.scrollingElement;
const jump = document.getElementById("jump");
let following = false;
// Earlier messages are loaded shortly before the reader reaches them.
const near = new IntersectionObserver(
  (seen) => seen.forEach(({ isIntersecting, target }) => isIntersecting && target.click()),
  { rootMargin: "800px 0px 0px" },
);

export function follow() {
  document.addEventListener("htmx:wsBeforeMessage", () => (following = atEnd()));
  document.addEventListener("htmx:wsAfterMessage", () => (following ? toEnd() : offer()));
  addEventListener("scroll", offer, { passive: true });
  addEventListener("resize", offer, { passive: true });
  jump.addEventListener("click", () => toEnd("smooth"));
  document.addEventListener("htmx:beforeSwap", keepPlace);
  document.addEventListener("htmx:load", awaitEarlier);
  if (arrivedFresh() && !isStarting()) toEnd();
  awaitEarlier();
  offer();
}

export function toEnd(behavior = "instant") {
  page.scrollTo({ top: page.scrollHeight, behavior });
  following = true;
}

// Missed messages are loaded on the reader's request.
function awaitEarlier() {
  near.disconnect();
  const link = document.querySelector("#messages > .earlier:not([data-gap])");
  if (link) near.observe(link);
}

// Earlier messages are inserted above without moving what is being read.
function keepPlace({ target }) {
  if (!target.matches?.(".earlier")) return;
  const below = page.scrollHeight - page.scrollTop;
  const restore = () => page.scrollTo({ top: page.scrollHeight - below, behavior: "instant" });
  document.addEventListener("htmx:afterSettle", restore, { once: true });
}

function atEnd() {
  return page.scrollHeight - page.scrollTop - page.clientHeight < NEAR;
}

function offer() {
  jump.hidden = atEnd() || isStarting();
}

// A new chat begins with its heading, also on a low screen.
function isStarting() {
  return Boolean(document.querySelector(".chat-main.starting"));
}

// After a reload the browser restores the reader's position.
function arrivedFresh() {
  const [navigation] = performance.getEntriesByType("navigation");
  return !location.hash && !["reload", "back_forward"].includes(navigation?.type);
}
