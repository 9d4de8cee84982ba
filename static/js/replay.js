// Replays a run: the frames of a page, on the run's own clock.

import { isComposing } from "./keys.js";
import { keepOpen, openSteps, words } from "./run.js";

const LONG = 1000; // a longer wait is skipped…
const BRIDGE = 600; // …within this time
const KEEP_EVERY = 50;
const MOST_KEPT = 60;
const NEAR = 96;
const TOLD = ["failed", "waiting", "stopped", "resumed", "away"]; // announced while playing

const byId = (id) => document.getElementById(id);
const reel = JSON.parse(byId("reel").textContent);
const [stage, player, scrubber] = ["stage", "player", "scrubber"].map(byId);
const [clock, now, stepLink, announcer] = ["clock", "now", "step", "announcer"].map(byId);
const [banner, links] = [byId("away"), [...document.querySelectorAll("#moments a")]];
const page = document.scrollingElement;
const isStill = matchMedia("(prefers-reduced-motion: reduce)");

const scenes = new Map();
const kept = new Map(); // rendered states, to return to
let seq = reel.at;
let ms = Number(scrubber.value);
let scene = null;
let wish = 0;
let then = 0;
let api;

htmx.defineExtension("replay", { init: (internal) => (api = internal) });
document.addEventListener("htmx:oobBeforeSwap", keepOpen);
document.addEventListener("keydown", pressed);
document.addEventListener("click", followed);
document.addEventListener("click", release);
document.addEventListener("change", ({ target }) => {
  if (target.name === "density") openSteps(stage, target.value === "everything");
});
byId("play").addEventListener("click", toggle);
scrubber.addEventListener("input", () => wind(Number(scrubber.value)));
addEventListener("popstate", () => {
  const asked = new URLSearchParams(location.search);
  seek(Number(asked.get("at")), asked.has("ms") ? Number(asked.get("ms")) : null);
});
if (document.documentElement.dataset.density === "everything") openSteps(stage, true);
byId("whole").textContent = words(reel.duration / 1000);
stamp(stage, ms);
draw();

// Scenes: parts of the run, each with its initial state.

function load(after) {
  if (!scenes.has(after)) {
    const coming = fetch(`${reel.scenes}?after=${after}`).then((answer) => {
      if (!answer.ok) throw new Error(`The server returned HTTP ${answer.status}.`);
      return answer.json();
    });
    coming.catch(() => scenes.delete(after));
    scenes.set(after, coming);
  }
  return scenes.get(after);
}

async function holding(target) {
  let found = await load(Math.floor(Math.max(target - 1, 0) / reel.part) * reel.part);
  while (found.until < target) found = await load(found.until);
  return found;
}

async function at(moment) {
  const begun = reel.starts.findLastIndex((start) => start <= moment);
  let found = await load(begun * reel.part);
  for (;;) {
    const later = found.frames.find(([, when]) => when > moment);
    if (later) return later[0] - 1;
    if (found.until >= reel.last) return reel.last;
    found = await load(found.until);
  }
}

// Seeks to a moment: from here, or from the nearest saved state.

async function seek(target, exactly = null) {
  const mine = ++wish;
  try {
    const found = await holding(Math.min(Math.max(target, 0), reel.last));
    if (mine === wish) go(found, Math.min(Math.max(target, 0), reel.last), exactly);
  } catch {
    lost();
  }
}

async function wind(moment) {
  const mine = ++wish;
  ms = moment;
  try {
    const target = await at(moment);
    if (mine === wish) await seek(target, moment);
  } catch {
    lost();
  }
}

function go(found, target, exactly) {
  const open = [...stage.querySelectorAll(".step > details[open]")].map(named);
  scene = found;
  if (target < seq || seq < found.after) redraw(target);
  while (seq < target) put(found.frames[seq - found.after]);
  for (const id of open) byId(id)?.querySelector("details").toggleAttribute("open", true);
  ms = exactly ?? time(seq);
  draw();
  if (!player.dataset.playing) settle();
}

function redraw(target) {
  const near = Math.max(...[...kept.keys()].filter((k) => k <= target && k >= scene.after), -1);
  const from = near < 0 ? wholeScene() : kept.get(near).cloneNode(true);
  stage.replaceChildren(from);
  openSteps(stage, document.documentElement.dataset.density === "everything");
  seq = near < 0 ? scene.after : near;
}

function wholeScene() {
  const fragment = api.makeFragment(scene.whole);
  stamp(fragment, scene.ms);
  return fragment.firstElementChild;
}

const named = (details) => details.parentElement.id;

// Applies a frame as a live page's socket does.
function put([number, when, html]) {
  const follows = page.scrollHeight - page.scrollTop - page.clientHeight < NEAR;
  const settled = api.makeSettleInfo(stage);
  const fragment = api.makeFragment(html);
  stamp(fragment, when);
  for (const child of [...fragment.children]) {
    api.oobSwap(child.getAttribute("hx-swap-oob") || "true", child, settled);
  }
  api.settleImmediately(settled.tasks);
  seq = number;
  if (seq % KEEP_EVERY === 0) keep();
  if (follows && player.dataset.playing) page.scrollTo({ top: page.scrollHeight, behavior: "instant" });
}

function keep() {
  if (kept.has(seq)) return;
  if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
  kept.set(seq, stage.firstElementChild.cloneNode(true));
}

// Marks when a ticking clock started, on the run's clock: a moment may be rendered from a later
// one.
function stamp(within, when) {
  for (const ticking of within.querySelectorAll("[data-elapsed-ms]")) {
    ticking.dataset.began ??= when - Number(ticking.dataset.elapsedMs);
  }
}

const time = (number) =>
  number > scene.after ? scene.frames[number - scene.after - 1][1] : scene.ms;

// Playing

async function toggle() {
  if (player.dataset.playing) return pause();
  player.dataset.playing = "true";
  if (seq >= reel.last) await seek(0);
  else if (!scene || seq < scene.after || seq > scene.until) await seek(seq, ms);
  then = performance.now();
  requestAnimationFrame(beat);
}

function pause() {
  delete player.dataset.playing;
  settle();
}

async function beat(moment) {
  if (!player.dataset.playing) return;
  const speed = Number(player.querySelector("[name=speed]:checked").value);
  const [before, told] = [seq, reached()];
  try {
    await pass(Math.min(Math.max(moment - then, 0), 250) * speed);
  } catch {
    return lost();
  }
  then = moment;
  if (seq !== before || reached() !== told || !isStill.matches) draw();
  if (reached() !== told) tell();
  if (seq >= reel.last) return pause();
  requestAnimationFrame(beat);
}

async function pass(left) {
  const mine = wish;
  while (left > 0 && seq < reel.last) {
    if (seq >= scene.until) scene = await load(scene.until);
    if (mine !== wish) return; // sought elsewhere meanwhile
    const next = scene.frames[seq - scene.after];
    const gap = next[1] - time(seq);
    const rate = byId("skip").checked && gap > LONG ? gap / BRIDGE : 1;
    const needed = Math.max(0, next[1] - ms) / rate;
    ms += Math.min(left, needed) * rate;
    if (left < needed) return;
    left -= needed;
    ms = Math.max(ms, next[1]);
    put(next);
  }
  if (scene.until < reel.last && seq > scene.until - reel.part / 2) load(scene.until);
}

// Controls

function draw() {
  const mark = reached();
  const text = words(ms / 1000);
  scrubber.value = ms;
  if (clock.textContent !== text) clock.textContent = text;
  for (const ticking of stage.querySelectorAll("[data-elapsed-ms]")) {
    const elapsed = words(Math.max(0, ms - Number(ticking.dataset.began)) / 1000);
    if (ticking.textContent !== elapsed) ticking.textContent = elapsed;
  }
  say(mark?.words ?? now.dataset.asked, mark);
  sayAway(reel.disconnections.filter(({ start, end }) => start <= ms && (end === null || ms < end)));
}

// What the user's page showed while it was disconnected.
function sayAway(away) {
  const state = away.some((one) => one.is_lost) ? "lost" : "closed";
  banner.hidden = !away.length;
  for (const message of banner.children) message.hidden = message.dataset.when !== state;
}

function say(text, mark) {
  scrubber.setAttribute("aria-valuetext", `${clock.textContent}, ${text}`);
  const at = String(reel.marks.indexOf(mark));
  if (now.textContent === text && now.dataset.at === at) return;
  now.textContent = text;
  now.dataset.kind = mark?.kind ?? "";
  now.dataset.at = at;
  stepLink.hidden = !mark?.step;
  stepLink.href = `${reel.trace}#step-${mark?.step}`;
  stepLink.firstElementChild.textContent = mark?.step;
  for (const [number, link] of links.entries()) {
    link.ariaCurrent = String(number) === at ? "true" : null;
  }
}

// Announces the position when it stops, and otherwise only what matters.
function settle() {
  clock.href = address({ seq, ms: Math.round(ms), is_between: scene && ms > time(seq) });
  byId("before").href = address(previous());
  byId("next").href = address(following());
  history.replaceState(null, "", clock.href);
  announcer.textContent = `${clock.textContent}, ${now.textContent}`;
}

function tell() {
  if (TOLD.includes(now.dataset.kind)) announcer.textContent = now.textContent;
}

function lost() {
  pause();
  now.textContent = announcer.textContent = now.dataset.lost;
}

// Targets

const previous = () => reel.marks.findLast((mark) => ahead(mark) < 0) ?? { seq: 0 };
const following = () => reel.marks.find((mark) => ahead(mark) > 0) ?? { seq: reel.last };
const visit = (mark) => seek(mark.seq, mark.is_between ? mark.ms : null);
const address = (mark) => `?at=${mark.seq}${mark.is_between ? `&ms=${mark.ms}` : ""}`;

function reached() {
  return reel.marks.findLast((mark) => ahead(mark) <= 0);
}

// Positive if it is still to come.
function ahead(mark) {
  return mark.seq - seq || mark.ms - ms;
}

function pressed(event) {
  if (isComposing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const is = (kinds) => event.target.closest(kinds);
  if (is("input:not([type=range]), textarea, select")) return;
  if (event.key === " " && is("button, a, summary")) return;
  const moves = {
    " ": toggle,
    ArrowLeft: () => event.shiftKey ? seek(seq - 1) : visit(previous()),
    ArrowRight: () => event.shiftKey ? seek(seq + 1) : visit(following()),
    Home: () => seek(0),
    End: () => seek(reel.last),
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  if (event.key !== " ") delete player.dataset.playing;
  moves[event.key]();
}

// A control chosen with the mouse releases the keys; with the keyboard, it needs them.
function release({ target }) {
  if (target.matches("input:not([type=range], :focus-visible)")) target.blur();
}

function followed(event) {
  const link = event.target.closest?.("#before, #next, #moments a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  delete player.dataset.playing;
  const places = { before: previous, next: following };
  visit(places[link.id]?.() ?? reel.marks[links.indexOf(link)]);
}
