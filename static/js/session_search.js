// Search results: chosen with the keyboard, and highlighted in the opened chat.

import { isComposing } from "./keys.js";
import { searchField, sessionList } from "./session_requests.js";

const MAX_MARKS = 200;
const MAX_PAGES = 100;

export function startSessionSearch() {
  searchField.addEventListener("keydown", onFieldKeydown);
  document.addEventListener("keydown", onResultKeydown);
  openFoundMessage();
  document.addEventListener("htmx:load", ({ target }) => target.closest?.("#messages") && highlightQuery());
}

const resultLinks = () => [...sessionList().querySelectorAll(".session > a, .found-hit")];

function onFieldKeydown(event) {
  if (isComposing(event)) return;
  if (event.key === "ArrowDown") goTo(event, resultLinks()[0]);
  if (event.key === "Enter" && searchField.value.trim()) goTo(event, bestHit(), true);
  if (event.key === "Escape" && searchField.value) {
    event.preventDefault();
    searchField.value = "";
    htmx.trigger(searchField, "search");
  }
}

// The first chat: at the message that was found, unless its title was.
function bestHit() {
  const firstHit = sessionList().querySelector(".found");
  const title = firstHit?.querySelector(".title").textContent.toLowerCase();
  const isNamed = searchField.value.toLowerCase().split(/\s+/).every((word) => title?.includes(word));
  return (!isNamed && firstHit?.querySelector(".found-hit")) || sessionList().querySelector(".session > a");
}

function onResultKeydown(event) {
  const current = event.target.closest?.("#sessions .session > a, #sessions .found-hit");
  if (!current || isComposing(event) || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const allLinks = resultLinks();
  const index = allLinks.indexOf(current) + (event.key === "ArrowDown" ? 1 : -1);
  goTo(event, index < 0 ? searchField : allLinks[index]);
}

function goTo(event, target, open = false) {
  if (!target) return;
  event.preventDefault();
  if (open) target.click();
  else target.focus();
}

// A long chat starts with its last messages: earlier ones are loaded until the found one is there.
async function openFoundMessage() {
  const pk = new URLSearchParams(location.search).get("message");
  if (!/^\d+$/.test(pk ?? "")) return;
  for (let page = 0; page < MAX_PAGES && !document.getElementById(`message-${pk}`); page += 1) {
    const earlier = document.querySelector("#messages > .earlier");
    if (!earlier) break;
    await htmx.ajax("GET", earlier.getAttribute("hx-get"), { target: earlier, swap: "outerHTML" });
  }
  highlightQuery()?.scrollIntoView({ block: "center" });
}

// Marks the words that led here in the message, without changing its elements; live frames may
// replace them. Returns the first one.
function highlightQuery() {
  const query = new URLSearchParams(location.search);
  const message = document.getElementById(`message-${query.get("message")}`);
  const queryWords = (query.get("q") ?? "").split(/\s+/).filter(Boolean);
  const words = [...new Set(queryWords.flatMap((word) => [word, word.normalize("NFKC")]))]; // as the server searches
  if (!message || !words.length || !globalThis.Highlight) return message;
  const ranges = words.flatMap((word) => occurrences(message, word)).slice(0, MAX_MARKS);
  CSS.highlights.set("found", new Highlight(...ranges));
  const firstRange = ranges.toSorted((a, b) => a.compareBoundaryPoints(Range.START_TO_START, b))[0];
  return firstRange?.startContainer.parentElement ?? message;
}

function occurrences(element, word) {
  const ranges = [];
  const folded = word.toLowerCase();
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.data.toLowerCase();
    for (let index = text.indexOf(folded); index >= 0; index = text.indexOf(folded, index + folded.length)) {
      const range = new Range();
      range.setStart(node, index);
      range.setEnd(node, index + folded.length);
      ranges.push(range);
    }
  }
  return ranges;
}
