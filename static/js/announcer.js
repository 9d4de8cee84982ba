// Tells screen readers about a run in one line: started, what it does, waiting, ended. Streamed
// text is no live region, because it would be read again with every word.

const region = document.getElementById("announcer");
const REPEAT_MS = 20_000;
// How long other news is left to be heard before an activity takes its place.
const HEARD_MS = 4_000;
const PASSING_KINDS = ["working", "still"];
const END_KINDS = { failed: "failed", interrupted: "failed", blocked: "blocked", stopped: "stopped" };
let announcedRun = "";
let announcedActivity = "";
let isWaiting = false;
let repeatTimer;
let activityTimer;
let heardAt = 0;

export function startAnnouncer() {
  document.addEventListener("htmx:wsAfterMessage", announceState);
  document.addEventListener("htmx:wsAfterMessage", announceActivity);
  announceState();
}

export function announce(kind) {
  const text = region.dataset[kind];
  if (!PASSING_KINDS.includes(kind)) heardAt = Date.now() + HEARD_MS;
  // Equal words are only announced if something changes.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

function announceState() {
  const state = document.getElementById("composer-state").dataset;
  const isSame = state.liveRun === announcedRun && "waiting" in state === isWaiting;
  if (isSame || (!state.liveRun && isNextComing())) return;
  clearInterval(repeatTimer);
  if (!state.liveRun) announce(END_KINDS[document.getElementById(`run-${announcedRun}`)?.dataset.status] ?? "finished");
  else if ("waiting" in state) announce("waiting");
  else {
    announce("working");
    repeatTimer = setInterval(() => announce("still"), REPEAT_MS);
  }
  announcedRun = state.liveRun;
  announcedActivity = activity();
  isWaiting = "waiting" in state;
}

// It changes with a step, not with a token.
function announceActivity() {
  const text = activity();
  if (!text || text === announcedActivity) return;
  announcedActivity = text;
  clearTimeout(activityTimer);
  activityTimer = setTimeout(() => {
    if (activity() === text) region.textContent = text;
  }, Math.max(0, heardAt - Date.now()));
}

function activity() {
  return (announcedRun && document.getElementById(`run-${announcedRun}-activity`)?.textContent) || "";
}

// Between two answers no run is live for a moment.
export function isNextComing() {
  return announcedRun && document.querySelector("#queue:not([hidden], [data-stuck])");
}
