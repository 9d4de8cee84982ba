// Replays a run: the frames of a page, on the run's own clock.

import { hasModifier, isComposing } from "./keys.js";
import { formatDuration, keepOpen, openRuns } from "./run.js";

const LONG_WAIT_MS = 1000; // a longer wait is skipped…
const BRIDGE_MS = 600; // …within this time
const SAVE_EVERY = 50;
const MAX_SAVED = 60;
const END_MARGIN = 96;
const ANNOUNCED_KINDS = ["failed", "waiting", "stopped", "resumed", "away"]; // announced while playing

const byId = (id) => document.getElementById(id);
const recording = JSON.parse(byId("reel").textContent);
const stage = byId("stage");
const player = byId("player");
const scrubber = byId("scrubber");
const clock = byId("clock");
const nowElement = byId("now");
const stepLink = byId("step");
const announcer = byId("announcer");
const banner = byId("away");
const links = [...document.querySelectorAll("#moments a")];
const scroller = document.scrollingElement;
const prefersStill = matchMedia("(prefers-reduced-motion: reduce)");

const scenes = new Map();
const savedStates = new Map(); // rendered states, to return to
let currentSeq = recording.at;
let currentMs = Number(scrubber.value);
let currentScene = null;
let seekCount = 0;
let lastFrameTime = 0;
let htmxApi;

htmx.defineExtension("replay", { init: (internal) => (htmxApi = internal) });
document.addEventListener("htmx:oobBeforeSwap", keepOpen);
document.addEventListener("keydown", onKeydown);
document.addEventListener("click", onLinkClick);
document.addEventListener("click", onControlClick);
byId("play").addEventListener("click", togglePlay);
scrubber.addEventListener("input", () => seekToTime(Number(scrubber.value)));
addEventListener("popstate", () => {
  const query = new URLSearchParams(location.search);
  seek(Number(query.get("at")), query.has("ms") ? Number(query.get("ms")) : null);
});
document.documentElement.dataset.steps = "open"; // a replay is watched for its steps
openRuns(stage, true);
byId("whole").textContent = formatDuration(recording.duration / 1000);
stampClocks(stage, currentMs);
updateControls();

// Scenes: parts of the run, each with its initial state.

function loadScene(afterSeq) {
  if (!scenes.has(afterSeq)) {
    const request = fetch(`${recording.scenes}?after=${afterSeq}`).then((response) => {
      if (!response.ok) throw new Error(`The server returned HTTP ${response.status}.`);
      return response.json();
    });
    request.catch(() => scenes.delete(afterSeq));
    scenes.set(afterSeq, request);
  }
  return scenes.get(afterSeq);
}

async function seqAt(targetMs) {
  const sceneIndex = recording.starts.findLastIndex((start) => start <= targetMs);
  let scene = await loadScene(sceneIndex * recording.part);
  for (;;) {
    const laterFrame = scene.frames.find(([, frameMs]) => frameMs > targetMs);
    if (laterFrame) return laterFrame[0] - 1;
    if (scene.until >= recording.last) return recording.last;
    scene = await loadScene(scene.until);
  }
}

// Seeks to a moment: from here, or from the nearest saved state.

async function seek(target, exactMs = null) {
  const ownSeek = ++seekCount;
  const targetSeq = Math.min(Math.max(target, 0), recording.last);
  try {
    let scene = await loadScene(Math.floor(Math.max(targetSeq - 1, 0) / recording.part) * recording.part);
    while (scene.until < targetSeq) scene = await loadScene(scene.until);
    if (ownSeek === seekCount) goToSeq(scene, targetSeq, exactMs);
  } catch {
    showLoadFailure();
  }
}

async function seekToTime(targetMs) {
  const ownSeek = ++seekCount;
  currentMs = targetMs;
  try {
    const target = await seqAt(targetMs);
    if (ownSeek === seekCount) await seek(target, targetMs);
  } catch {
    showLoadFailure();
  }
}

function goToSeq(scene, target, exactMs) {
  const openIds = [...stage.querySelectorAll(".step > details[open]")].map((details) => details.parentElement.id);
  currentScene = scene;
  if (target < currentSeq || currentSeq < scene.after) restoreState(target);
  while (currentSeq < target) applyFrame(scene.frames[currentSeq - scene.after]);
  for (const id of openIds) byId(id)?.querySelector("details").toggleAttribute("open", true);
  currentMs = exactMs ?? timeOf(currentSeq);
  updateControls();
  if (!player.dataset.playing) showSettledPosition();
}

function restoreState(target) {
  const usable = [...savedStates.keys()].filter((seq) => seq <= target && seq >= currentScene.after);
  if (usable.length) {
    currentSeq = Math.max(...usable);
    stage.replaceChildren(savedStates.get(currentSeq).cloneNode(true));
  } else {
    currentSeq = currentScene.after;
    const fragment = htmxApi.makeFragment(currentScene.whole);
    stampClocks(fragment, currentScene.ms);
    stage.replaceChildren(fragment.firstElementChild);
  }
  openRuns(stage, true);
}

// Applies a frame as a live page's socket does.
function applyFrame([number, frameMs, html]) {
  const follows = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < END_MARGIN;
  const settleInfo = htmxApi.makeSettleInfo(stage);
  const fragment = htmxApi.makeFragment(html);
  stampClocks(fragment, frameMs);
  for (const child of [...fragment.children]) {
    htmxApi.oobSwap(child.getAttribute("hx-swap-oob") || "true", child, settleInfo);
  }
  htmxApi.settleImmediately(settleInfo.tasks);
  currentSeq = number;
  if (currentSeq % SAVE_EVERY === 0 && !savedStates.has(currentSeq)) {
    if (savedStates.size >= MAX_SAVED) savedStates.delete(savedStates.keys().next().value);
    savedStates.set(currentSeq, stage.firstElementChild.cloneNode(true));
  }
  if (follows && player.dataset.playing) scroller.scrollTo({ top: scroller.scrollHeight, behavior: "instant" });
}

// Marks when a ticking clock started, on the run's clock: a moment may be rendered from a later
// one.
function stampClocks(within, startMs) {
  for (const ticking of within.querySelectorAll("[data-elapsed-ms]")) {
    ticking.dataset.began ??= startMs - Number(ticking.dataset.elapsedMs);
  }
}

const timeOf = (number) =>
  number > currentScene.after ? currentScene.frames[number - currentScene.after - 1][1] : currentScene.ms;

// Playing

async function togglePlay() {
  if (player.dataset.playing) return pause();
  player.dataset.playing = "true";
  if (currentSeq >= recording.last) await seek(0);
  else if (!currentScene || currentSeq < currentScene.after || currentSeq > currentScene.until) await seek(currentSeq, currentMs);
  lastFrameTime = performance.now();
  requestAnimationFrame(onAnimationFrame);
}

function pause() {
  delete player.dataset.playing;
  showSettledPosition();
}

async function onAnimationFrame(moment) {
  if (!player.dataset.playing) return;
  const speed = Number(player.querySelector("[name=speed]:checked").value);
  const previousSeq = currentSeq;
  const previous = currentMark();
  try {
    await advance(Math.min(Math.max(moment - lastFrameTime, 0), 250) * speed);
  } catch {
    return showLoadFailure();
  }
  lastFrameTime = moment;
  if (currentSeq !== previousSeq || currentMark() !== previous || !prefersStill.matches) updateControls();
  if (currentMark() !== previous && ANNOUNCED_KINDS.includes(nowElement.dataset.kind)) announcer.textContent = nowElement.textContent;
  if (currentSeq >= recording.last) return pause();
  requestAnimationFrame(onAnimationFrame);
}

async function advance(remainingMs) {
  const ownSeek = seekCount;
  while (remainingMs > 0 && currentSeq < recording.last) {
    if (currentSeq >= currentScene.until) currentScene = await loadScene(currentScene.until);
    if (ownSeek !== seekCount) return; // sought elsewhere meanwhile
    const frame = currentScene.frames[currentSeq - currentScene.after];
    const gapMs = frame[1] - timeOf(currentSeq);
    const factor = byId("skip").checked && gapMs > LONG_WAIT_MS ? gapMs / BRIDGE_MS : 1;
    const neededMs = Math.max(0, frame[1] - currentMs) / factor;
    currentMs += Math.min(remainingMs, neededMs) * factor;
    if (remainingMs < neededMs) return;
    remainingMs -= neededMs;
    currentMs = Math.max(currentMs, frame[1]);
    applyFrame(frame);
  }
  if (currentScene.until < recording.last && currentSeq > currentScene.until - recording.part / 2) loadScene(currentScene.until);
}

// Controls

function updateControls() {
  const mark = currentMark();
  const timeText = formatDuration(currentMs / 1000);
  scrubber.value = currentMs;
  if (clock.textContent !== timeText) clock.textContent = timeText;
  for (const ticking of stage.querySelectorAll("[data-elapsed-ms]")) {
    const elapsed = formatDuration(Math.max(0, currentMs - Number(ticking.dataset.began)) / 1000);
    if (ticking.textContent !== elapsed) ticking.textContent = elapsed;
  }
  showPosition(mark?.words ?? nowElement.dataset.asked, mark);
  // What the user's page showed while it was disconnected.
  const disconnections = recording.disconnections.filter(({ start, end }) => start <= currentMs && (end === null || currentMs < end));
  const state = disconnections.some((disconnection) => disconnection.is_lost) ? "lost" : "closed";
  banner.hidden = !disconnections.length;
  for (const message of banner.children) message.hidden = message.dataset.when !== state;
}

function showPosition(text, mark) {
  scrubber.setAttribute("aria-valuetext", `${clock.textContent}, ${text}`);
  const markIndex = String(recording.marks.indexOf(mark));
  if (nowElement.textContent === text && nowElement.dataset.at === markIndex) return;
  nowElement.textContent = text;
  nowElement.dataset.kind = mark?.kind ?? "";
  nowElement.dataset.at = markIndex;
  stepLink.hidden = !mark?.step;
  stepLink.href = `${recording.trace}#step-${mark?.step}`;
  stepLink.firstElementChild.textContent = mark?.step;
  for (const [number, link] of links.entries()) {
    link.ariaCurrent = String(number) === markIndex ? "true" : null;
  }
}

// Announces the position when it stops, and otherwise only what matters.
function showSettledPosition() {
  clock.href = markUrl({ seq: currentSeq, ms: Math.round(currentMs), is_between: currentScene && currentMs > timeOf(currentSeq) });
  byId("before").href = markUrl(previousMark());
  byId("next").href = markUrl(nextMark());
  history.replaceState(null, "", clock.href);
  announcer.textContent = `${clock.textContent}, ${nowElement.textContent}`;
}

function showLoadFailure() {
  pause();
  nowElement.textContent = announcer.textContent = nowElement.dataset.lost;
}

// Targets

const previousMark = () => recording.marks.findLast((mark) => compareToPosition(mark) < 0) ?? { seq: 0 };
const nextMark = () => recording.marks.find((mark) => compareToPosition(mark) > 0) ?? { seq: recording.last };
const seekToMark = (mark) => seek(mark.seq, mark.is_between ? mark.ms : null);
const markUrl = (mark) => `?at=${mark.seq}${mark.is_between ? `&ms=${mark.ms}` : ""}`;

function currentMark() {
  return recording.marks.findLast((mark) => compareToPosition(mark) <= 0);
}

// Positive if it is still to come.
function compareToPosition(mark) {
  return mark.seq - currentSeq || mark.ms - currentMs;
}

function onKeydown(event) {
  if (isComposing(event) || hasModifier(event)) return;
  const isWithin = (selector) => event.target.closest(selector);
  if (isWithin("input:not([type=range]), textarea, select")) return;
  if (event.key === " " && isWithin("button, a, summary")) return;
  const actions = {
    " ": togglePlay,
    ArrowLeft: () => event.shiftKey ? seek(currentSeq - 1) : seekToMark(previousMark()),
    ArrowRight: () => event.shiftKey ? seek(currentSeq + 1) : seekToMark(nextMark()),
    Home: () => seek(0),
    End: () => seek(recording.last),
  };
  if (!(event.key in actions)) return;
  event.preventDefault();
  if (event.key !== " ") delete player.dataset.playing;
  actions[event.key]();
}

// A control chosen with the mouse releases the keys; with the keyboard, it needs them.
function onControlClick({ target }) {
  if (target.matches("input:not([type=range], :focus-visible)")) target.blur();
}

function onLinkClick(event) {
  const link = event.target.closest?.("#before, #next, #moments a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  delete player.dataset.playing;
  const targets = { before: previousMark, next: nextMark };
  seekToMark(targets[link.id]?.() ?? recording.marks[links.indexOf(link)]);
}
