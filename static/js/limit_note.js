// The line about a limit that is nearly used up: renewed after every run, and once as a message.

const KEY = "ashiato-limit-notices";
const MAX_KEYS = 20;
const SECONDS = 10;
let lastLiveRun = "";

export function startLimitNote() {
  if (!document.getElementById("limit-note")) return;
  lastLiveRun = liveRun();
  announceLimit();
  document.addEventListener("htmx:oobAfterSwap", onOobSwap);
  document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "limit-note" && announceLimit());
}

function onOobSwap() {
  const before = lastLiveRun;
  lastLiveRun = liveRun();
  if (before && before !== lastLiveRun) htmx.trigger(document.body, "limits");
}

function liveRun() {
  return document.getElementById("composer-state")?.dataset.liveRun ?? "";
}

// Once per window in this browser, at 80 and at 100 percent.
function announceLimit() {
  const note = document.getElementById("limit-note");
  const noticeKey = note?.dataset.notice;
  const announcedKeys = JSON.parse(localStorage.getItem(KEY) ?? "[]");
  if (!noticeKey || announcedKeys.includes(noticeKey)) return;
  localStorage.setItem(KEY, JSON.stringify([...announcedKeys, noticeKey].slice(-MAX_KEYS)));
  const text = note.querySelector("span").textContent;
  const level = note.dataset.usedUp === undefined ? "" : "problem";
  document.dispatchEvent(new CustomEvent("chats:notice", { detail: { text, level, seconds: SECONDS } }));
}
