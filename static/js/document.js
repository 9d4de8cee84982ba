// The document viewer: goes to the linked passage, and plays recordings from a line.

import { startPlayer } from "./player.js";
import { makeFocusable } from "./prose_tables.js";

const passage = document.getElementById("place");
const player = document.getElementById("player");
const moments = [...document.querySelectorAll(".document-text a.moment")];
const starts = moments.map((moment) => Number(moment.dataset.play.split("#t=")[1]));

startPlayer();

// Screen readers start at the passage, too.
if (passage && location.hash === "#place") passage.focus({ preventScroll: true });

document.addEventListener("click", ({ target }) => {
  const clip = target.closest?.("[data-seconds]");
  if (!clip || !player) return;
  player.currentTime = Number(clip.dataset.seconds);
  player.play();
});

// Marks the line that is being played.
player?.addEventListener("timeupdate", () => {
  const next = starts.findIndex((start) => start > player.currentTime + 0.2);
  const current = moments[(next < 0 ? moments.length : next) - 1];
  if (!current || current.hasAttribute("aria-current")) return;
  for (const moment of moments) moment.removeAttribute("aria-current");
  current.setAttribute("aria-current", "time");
});

document.querySelectorAll("#document-text .table-box").forEach((box) => makeFocusable(box));
document.querySelectorAll("#document-text pre > code").forEach((code) => makeFocusable(code, "code"));

// A narrow page has room for the text only.
if (matchMedia("(max-width: 52rem)").matches) document.querySelector("details.document-index")?.removeAttribute("open");
document.querySelector(".document-index [aria-current]")?.scrollIntoView({ block: "nearest" });
