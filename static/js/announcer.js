// Tells screen readers about a run in one line: started, still working, waiting, ended. Streamed
// text is no live region, because it would be read again with every word.

const place = document.getElementById("announcer");
const AGAIN = 20_000;
const ENDS = { failed: "failed", interrupted: "failed", blocked: "blocked", stopped: "stopped" };
let run = "";
let isWaiting = false;
let repeats;

export function announceRuns() {
  document.addEventListener("htmx:wsAfterMessage", look);
  look();
}

export function announce(what) {
  const words = place.dataset[what];
  // Equal words are only announced if something changes.
  place.textContent = place.textContent === words ? `${words}\u00a0` : words;
}

function look() {
  const state = document.getElementById("composer-state").dataset;
  const isSame = state.liveRun === run && "waiting" in state === isWaiting;
  if (isSame || (!state.liveRun && isNextComing())) return;
  clearInterval(repeats);
  if (!state.liveRun) announce(ENDS[document.getElementById(`run-${run}`)?.dataset.status] ?? "finished");
  else if ("waiting" in state) announce("waiting");
  else {
    announce("working");
    repeats = setInterval(() => announce("still"), AGAIN);
  }
  run = state.liveRun;
  isWaiting = "waiting" in state;
}

// Between two answers no run is live for a moment.
export function isNextComing() {
  return run && document.querySelector("#queue:not([hidden], [data-stuck])");
}
