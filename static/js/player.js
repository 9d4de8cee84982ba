// Plays a recording from a time in an answer or a transcript, in a bar that stays on the page.

import { isComposing } from "./keys.js";

let bar; // the only one
let opener; // the link that gets the focus back

export function playRecordings() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.moment[data-play]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    play(link);
  });
  // One sound at a time.
  document.addEventListener("play", ({ target }) => {
    for (const other of document.querySelectorAll("audio, video")) if (other !== target) other.pause();
  }, true);
}

// A page with a player of its own uses that.
function play(link) {
  opener = link;
  const [file, at] = link.dataset.play.split("#t=");
  const own = document.getElementById("player");
  const media = own ?? opened(link, file);
  start(media, Number(at));
  for (const old of document.querySelectorAll("a.moment[aria-current]")) old.removeAttribute("aria-current");
  link.setAttribute("aria-current", "time");
}

function start(media, seconds) {
  const go = () => {
    media.currentTime = seconds;
    media.play().catch(() => {}); // without a sound card, it is at least at the right place
  };
  if (media.readyState > 0) go();
  else {
    media.addEventListener("loadedmetadata", go, { once: true });
    media.load();
  }
}

function opened(link, file) {
  bar ??= build();
  const place = document.getElementById("composer") ?? document.querySelector("main");
  if (!bar.isConnected) place[place.id === "composer" ? "prepend" : "append"](bar);
  const name = bar.querySelector("[data-name]");
  name.textContent = link.dataset.name;
  name.href = link.href;
  const old = bar.querySelector("audio, video");
  if (old?.dataset.file === file && !old.error) return old;
  old?.remove();
  bar.querySelector("[role=status]").textContent = "";
  const media = document.createElement(link.dataset.kind === "video" ? "video" : "audio");
  Object.assign(media, { controls: true, preload: "metadata", src: file });
  media.dataset.file = file;
  media.setAttribute("playsinline", "");
  media.setAttribute("aria-label", link.dataset.name);
  media.addEventListener("error", failed);
  bar.append(media);
  return media;
}

function build() {
  const made = document.getElementById("recording-player").content.cloneNode(true).firstElementChild;
  made.querySelector("[data-close]").addEventListener("click", close);
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || isComposing(event)) return;
    event.stopPropagation(); // it would stop the run
    close();
  });
  return made;
}

function failed() {
  const status = bar.querySelector("[role=status]");
  status.textContent = status.dataset.failed;
}

function close() {
  bar.querySelector("audio, video")?.remove();
  bar.remove();
  opener?.removeAttribute("aria-current");
  if (opener?.isConnected) opener.focus();
}
