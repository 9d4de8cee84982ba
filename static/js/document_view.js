// A document, on its own page or in the panel beside a chat: the original of a PDF, tables that
// scroll, and recordings that play from a line.

import { PdfView } from "./document_pdf.js";
import { makeFocusable } from "./prose_tables.js";

// Returns what ends it, when the panel displays something else.
export function startDocument(within) {
  for (const box of within.querySelectorAll(".document-text .table-box")) makeFocusable(box);
  for (const code of within.querySelectorAll(".document-text pre > code")) makeFocusable(code, "code");
  const player = within.querySelector("#player");
  if (player) followPlayer(within, player);
  const pdf = within.querySelector("#pdf") && new PdfView(within);
  return () => pdf?.close();
}

function followPlayer(within, player) {
  const moments = [...within.querySelectorAll(".document-text a.moment")];
  const starts = moments.map((moment) => Number(moment.dataset.play.split("#t=")[1]));
  for (const clip of within.querySelectorAll("[data-seconds]")) {
    clip.addEventListener("click", () => {
      player.currentTime = Number(clip.dataset.seconds);
      player.play();
    });
  }
  // Marks the line that is being played.
  player.addEventListener("timeupdate", () => {
    const next = starts.findIndex((start) => start > player.currentTime + 0.2);
    const current = moments[(next < 0 ? moments.length : next) - 1];
    if (!current || current.hasAttribute("aria-current")) return;
    for (const moment of moments) moment.removeAttribute("aria-current");
    current.setAttribute("aria-current", "time");
  });
}
