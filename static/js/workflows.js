// The editor: numbers lines, links problems to their lines, keeps the indentation, and warns
// about unsaved changes.

import { isComposing } from "./keys.js";
import { announceInput } from "./text_fields.js";

const text = document.getElementById("text");
const lines = document.getElementById("lines");
let isSaving = false;

text.addEventListener("input", numberLines);
text.addEventListener("input", () => { isSaving = false; });
text.form.addEventListener("submit", () => { isSaving = true; });
addEventListener("beforeunload", onBeforeunload);
text.addEventListener("scroll", () => { lines.scrollTop = text.scrollTop; });
text.addEventListener("keydown", onKeydown);
document.addEventListener("click", onClick);
// Text being composed isn't submitted; Japanese would be, syllable by syllable.
text.addEventListener("input", (event) => event.isComposing && event.stopImmediatePropagation(), true);
text.addEventListener("compositionend", () => announceInput(text));
numberLines();
if (location.hash.startsWith("#line-")) goToLine(Number(location.hash.slice(6)), 1);

function numberLines() {
  const count = text.value.split("\n").length;
  if (Number(lines.dataset.count) === count) return;
  lines.dataset.count = count;
  lines.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
}

function onBeforeunload(event) {
  const isSaved = text.value === text.defaultValue && !("unsaved" in text.dataset);
  if (!isSaving && !isSaved) event.preventDefault();
}

function onKeydown(event) {
  if (event.key !== "Enter" || isComposing(event) || event.ctrlKey || event.metaKey) return;
  const before = text.value.slice(0, text.selectionStart);
  const indent = /^[ ]*/.exec(before.slice(before.lastIndexOf("\n") + 1))[0];
  if (!indent) return;
  event.preventDefault();
  document.execCommand("insertText", false, `\n${indent}`); // can be undone, unlike setRangeText
}

function onClick(event) {
  const link = event.target.closest?.("a[data-line], a.node");
  const line = Number(link?.dataset.line ?? /#line-(\d+)$/.exec(link?.getAttribute("href"))?.[1]);
  if (!line) return;
  event.preventDefault();
  goToLine(line, Number(link.dataset.column ?? 1));
}

function goToLine(line, column) {
  const allLines = text.value.split("\n");
  const start = allLines.slice(0, line - 1).reduce((sum, previous) => sum + previous.length + 1, 0);
  const end = start + (allLines[line - 1]?.length ?? 0);
  text.focus({ preventScroll: true });
  text.setSelectionRange(Math.min(start + column - 1, end), end);
  const height = text.scrollHeight / allLines.length;
  text.scrollTop = Math.max(0, (line - 4) * height);
  text.scrollIntoView({ block: "nearest" });
}
