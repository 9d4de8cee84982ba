// The line about a limit that is nearly used up: renewed after every run, and once as a message.

const KEY = "ashiato-limit-notices";
const MOST = 20;
const SECONDS = 10;
let live = "";

export function noteLimits() {
  if (!document.getElementById("limit-note")) return;
  live = liveRun();
  tell();
  document.addEventListener("htmx:oobAfterSwap", changed);
  document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "limit-note" && tell());
}

function changed() {
  const before = live;
  live = liveRun();
  if (before && before !== live) htmx.trigger(document.body, "limits");
}

function liveRun() {
  return document.getElementById("composer-state")?.dataset.liveRun ?? "";
}

// Once per window in this browser, at 80 and at 100 percent.
function tell() {
  const note = document.getElementById("limit-note");
  const about = note?.dataset.notice;
  const known = JSON.parse(localStorage.getItem(KEY) ?? "[]");
  if (!about || known.includes(about)) return;
  localStorage.setItem(KEY, JSON.stringify([...known, about].slice(-MOST)));
  const text = note.querySelector("span").textContent;
  const level = note.dataset.usedUp === undefined ? "" : "problem";
  document.dispatchEvent(new CustomEvent("chats:notice", { detail: { text, level, seconds: SECONDS } }));
}
