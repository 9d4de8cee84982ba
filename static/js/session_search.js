// Search results: chosen with the keyboard, and highlighted in the opened chat.

import { isComposing } from "./keys.js";
import { list, search } from "./session_requests.js";

const MAX_MARKS = 200;
const MAX_PAGES = 100;

export function findSessions() {
  search.addEventListener("keydown", fromField);
  document.addEventListener("keydown", inResults);
  openAtMessage();
  document.addEventListener("htmx:load", ({ target }) => target.closest?.("#messages") && highlight());
}

const links = () => [...list().querySelectorAll(".session > a, .found-hit")];

function fromField(event) {
  if (isComposing(event)) return;
  if (event.key === "ArrowDown") go(event, links()[0]);
  if (event.key === "Enter" && search.value.trim()) go(event, bestHit(), true);
  if (event.key === "Escape" && search.value) {
    event.preventDefault();
    search.value = "";
    htmx.trigger(search, "search");
  }
}

// The first chat: at the message that was found, unless its title was.
function bestHit() {
  const first = list().querySelector(".found");
  const title = first?.querySelector(".title").textContent.toLowerCase();
  const isNamed = search.value.toLowerCase().split(/\s+/).every((word) => title?.includes(word));
  return (!isNamed && first?.querySelector(".found-hit")) || list().querySelector(".session > a");
}

function inResults(event) {
  const here = event.target.closest?.("#sessions .session > a, #sessions .found-hit");
  if (!here || isComposing(event) || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const all = links();
  const at = all.indexOf(here) + (event.key === "ArrowDown" ? 1 : -1);
  go(event, at < 0 ? search : all[at]);
}

function go(event, goal, open = false) {
  if (!goal) return;
  event.preventDefault();
  if (open) goal.click();
  else goal.focus();
}

// A long chat starts with its last messages: earlier ones are loaded until the found one is there.
async function openAtMessage() {
  const pk = new URLSearchParams(location.search).get("message");
  if (!/^\d+$/.test(pk ?? "")) return;
  for (let page = 0; page < MAX_PAGES && !document.getElementById(`message-${pk}`); page += 1) {
    const earlier = document.querySelector("#messages > .earlier");
    if (!earlier) break;
    await htmx.ajax("GET", earlier.getAttribute("hx-get"), { target: earlier, swap: "outerHTML" });
  }
  highlight()?.scrollIntoView({ block: "center" });
}

// Marks the words that led here in the message, without changing its elements; live frames may
// replace them. Returns the first one.
function highlight() {
  const query = new URLSearchParams(location.search);
  const message = document.getElementById(`message-${query.get("message")}`);
  const typed = (query.get("q") ?? "").split(/\s+/).filter(Boolean);
  const words = [...new Set(typed.flatMap((word) => [word, word.normalize("NFKC")]))]; // as the server searches
  if (!message || !words.length || !globalThis.Highlight) return message;
  const ranges = words.flatMap((word) => occurrences(message, word)).slice(0, MAX_MARKS);
  CSS.highlights.set("found", new Highlight(...ranges));
  const first = ranges.toSorted((a, b) => a.compareBoundaryPoints(Range.START_TO_START, b))[0];
  return first?.startContainer.parentElement ?? message;
}

function occurrences(element, word) {
  const [found, wanted] = [[], word.toLowerCase()];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.data.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      found.push(range);
    }
  }
  return found;
}
