// Highlights the cited place in an observation, without changing any element.

const NAME = "evidence";
const SEEN = ".seen pre, .payload, .shared-steps pre";
const LOAD_MS = 10_000; // a step that takes longer to load isn't waited for
const NEAR = 24; // characters on each side that tell one figure from another
let wanted;

document.addEventListener("htmx:load", ({ target }) => {
  if (wanted && Date.now() < wanted.until && highlight(target, wanted.place)) wanted = undefined;
});

// What a link stands for: its text, and the text around it.
export function placeOf(text) {
  const match = text.querySelector("mark");
  if (!match) return { match: plain(text.textContent).replace(/…$/, "") };
  const [before, after] = [match.previousSibling, match.nextSibling].map((node) => node?.textContent ?? "");
  return { before: plain(before).slice(-NEAR), match: plain(match.textContent), after: plain(after).slice(0, NEAR) };
}

// Highlights it as soon as it has been loaded.
export function highlightLater(place) {
  wanted = { place, until: Date.now() + LOAD_MS };
}

export function highlight(within, place) {
  if (!globalThis.Highlight) return false; // the step is open, which is the main thing
  // What a tool returned comes after what it was called with.
  for (const element of [...within.querySelectorAll(SEEN)].reverse()) {
    const range = find(element, place);
    if (!range) continue;
    CSS.highlights.set(NAME, new Highlight(range));
    reveal(range, element);
    return true;
  }
  return false;
}

export function clear() {
  CSS.highlights?.delete(NAME);
}

function find(element, { before = "", match, after = "" }) {
  const { text, places } = flatten(element);
  const near = text.indexOf(before + match + after);
  const start = near < 0 ? text.indexOf(match) : near + before.length;
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
    for (let at = 0; at < node.data.length; at += 1) {
      const character = /\s/.test(node.data[at]) ? " " : node.data[at];
      if (character === " " && (!text || text.endsWith(" "))) continue;
      text += character;
      places.push([node, at]);
    }
  }
  return { text, places };
}

function plain(text) {
  return text.replace(/\s+/g, " ").trim();
}

function reveal(range, element) {
  for (let box = element; box; box = box.parentElement) {
    if (box.scrollHeight <= box.clientHeight + 1) continue;
    const top = box === document.documentElement ? 0 : box.getBoundingClientRect().top;
    const away = range.getBoundingClientRect().top - top;
    if (away < 0 || away > box.clientHeight - 40) box.scrollTop += away - box.clientHeight / 3;
  }
}
