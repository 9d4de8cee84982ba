// Highlights the cited place in an observation, without changing any element.

const NAME = "evidence";
const OBSERVATIONS = ".seen pre, .payload, .shared-steps pre";
const LOAD_MS = 10_000; // a step that takes longer to load isn't waited for
const CONTEXT_CHARS = 24; // characters on each side that tell one figure from another
let awaited;

document.addEventListener("htmx:load", ({ target }) => {
  if (awaited && Date.now() < awaited.until && highlight(target, awaited.place)) awaited = undefined;
});

// What a link stands for: its text, and the text around it.
export function citedPlace(text) {
  const match = text.querySelector("mark");
  if (!match) return { match: singleSpaced(text.textContent).replace(/…$/, "") };
  return {
    before: singleSpaced(match.previousSibling?.textContent ?? "").slice(-CONTEXT_CHARS),
    match: singleSpaced(match.textContent),
    after: singleSpaced(match.nextSibling?.textContent ?? "").slice(0, CONTEXT_CHARS),
  };
}

// Highlights it as soon as it has been loaded.
export function highlightLater(place) {
  awaited = { place, until: Date.now() + LOAD_MS };
}

export function highlight(within, place) {
  if (!globalThis.Highlight) return false; // the step is open, which is the main thing
  // What a tool returned comes after what it was called with.
  for (const element of [...within.querySelectorAll(OBSERVATIONS)].reverse()) {
    const range = findRange(element, place);
    if (!range) continue;
    CSS.highlights.set(NAME, new Highlight(range));
    scrollToRange(range, element);
    return true;
  }
  return false;
}

export function clearHighlight() {
  CSS.highlights?.delete(NAME);
}

function findRange(element, { before = "", match, after = "" }) {
  const { text, places } = flatten(element);
  const inContext = text.indexOf(before + match + after);
  const start = inContext < 0 ? text.indexOf(match) : inContext + before.length;
  if (!match || start < 0) return null;
  const range = document.createRange();
  range.setStart(...places[start]);
  const [node, offset] = places[start + match.length - 1];
  range.setEnd(node, offset + 1);
  return range;
}

// The text with single spaces, and where each character is.
function flatten(element) {
  const places = [];
  let text = "";
  const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    for (let offset = 0; offset < node.data.length; offset += 1) {
      const character = /\s/.test(node.data[offset]) ? " " : node.data[offset];
      if (character === " " && (!text || text.endsWith(" "))) continue;
      text += character;
      places.push([node, offset]);
    }
  }
  return { text, places };
}

function singleSpaced(text) {
  return text.replace(/\s+/g, " ").trim();
}

function scrollToRange(range, element) {
  for (let box = element; box; box = box.parentElement) {
    if (box.scrollHeight <= box.clientHeight + 1) continue;
    const top = box === document.documentElement ? 0 : box.getBoundingClientRect().top;
    const offset = range.getBoundingClientRect().top - top;
    if (offset < 0 || offset > box.clientHeight - 40) box.scrollTop += offset - box.clientHeight / 3;
  }
}
