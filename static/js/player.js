// Plays a recording from a time in an answer or a transcript, in a bar that stays on the page.

import { isComposing, isPlainClick } from "./keys.js";

let bar; // the only one
let opener; // the link that gets the focus back

export function startPlayer() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.moment[data-play]");
    if (!link || !isPlainClick(event)) return;
    event.preventDefault();
    playLink(link);
  });
  // One sound at a time.
  document.addEventListener("play", ({ target }) => {
    for (const other of document.querySelectorAll("audio, video")) if (other !== target) other.pause();
  }, true);
}

// A document with a player of its own uses that.
function playLink(link) {
  opener = link;
  const [file, seconds] = link.dataset.play.split("#t=");
  const own = document.getElementById("player");
  const media = own?.getAttribute("src").startsWith(file) ? own : openBar(link, file);
  const seekAndPlay = () => {
    media.currentTime = Number(seconds);
    media.play().catch(() => {}); // without a sound card, it is at least at the right place
  };
  if (media.readyState > 0) seekAndPlay();
  else {
    media.addEventListener("loadedmetadata", seekAndPlay, { once: true });
    media.load();
  }
  for (const old of document.querySelectorAll("a.moment[aria-current]")) old.removeAttribute("aria-current");
  link.setAttribute("aria-current", "time");
}

function openBar(link, file) {
  if (!bar) {
    bar = document.getElementById("recording-player").content.cloneNode(true).firstElementChild;
    bar.querySelector("[data-close]").addEventListener("click", closeBar);
    bar.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || isComposing(event)) return;
      event.stopPropagation(); // it would stop the run
      closeBar();
    });
  }
  const parent = document.getElementById("composer") ?? document.querySelector("main");
  if (!bar.isConnected) parent[parent.id === "composer" ? "prepend" : "append"](bar);
  const name = bar.querySelector("[data-name]");
  name.textContent = link.dataset.name;
  name.href = link.href;
  const old = bar.querySelector("audio, video");
  if (old?.dataset.file === file && !old.error) return old;
  old?.remove();
  const status = bar.querySelector("[role=status]");
  status.textContent = "";
  const media = document.createElement(link.dataset.kind === "video" ? "video" : "audio");
  Object.assign(media, { controls: true, preload: "metadata", src: file });
  media.dataset.file = file;
  media.setAttribute("playsinline", "");
  media.setAttribute("aria-label", link.dataset.name);
  media.addEventListener("error", () => (status.textContent = status.dataset.failed));
  bar.append(media);
  return media;
}

function closeBar() {
  bar.querySelector("audio, video")?.remove();
  bar.remove();
  opener?.removeAttribute("aria-current");
  if (opener?.isConnected) opener.focus();
}
