// The editor: lines are numbered, a problem leads to its line, a new line begins like the last,
// and what was not saved is not left without a question.

const text = document.getElementById("text");
const lines = document.getElementById("lines");
let isSaving = false;

text.addEventListener("input", number);
text.addEventListener("input", () => { isSaving = false; });
text.form.addEventListener("submit", () => { isSaving = true; });
addEventListener("beforeunload", leaving);
text.addEventListener("scroll", () => { lines.scrollTop = text.scrollTop; });
text.addEventListener("keydown", pressed);
document.addEventListener("click", led);
// What is still being composed is not sent; Japanese would be, syllable by syllable.
text.addEventListener("input", (event) => event.isComposing && event.stopImmediatePropagation(), true);
text.addEventListener("compositionend", () => text.dispatchEvent(new Event("input", { bubbles: true })));
number();
if (location.hash.startsWith("#line-")) go(Number(location.hash.slice(6)), 1);

function number() {
  const count = text.value.split("\n").length;
  if (Number(lines.dataset.count) === count) return;
  lines.dataset.count = count;
  lines.textContent = Array.from({ length: count }, (_, at) => at + 1).join("\n");
}

function leaving(event) {
  const isSaved = text.value === text.defaultValue && !("unsaved" in text.dataset);
  if (!isSaving && !isSaved) event.preventDefault();
}

function pressed(event) {
  if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
  const before = text.value.slice(0, text.selectionStart);
  const indent = /^[ ]*/.exec(before.slice(before.lastIndexOf("\n") + 1))[0];
  if (!indent) return;
  event.preventDefault();
  document.execCommand("insertText", false, `\n${indent}`); // unlike setRangeText, this can be undone
}

function led(event) {
  const link = event.target.closest?.("a[data-line], a.node");
  const line = Number(link?.dataset.line ?? /#line-(\d+)$/.exec(link?.getAttribute("href"))?.[1]);
  if (!line) return;
  event.preventDefault();
  go(line, Number(link.dataset.column ?? 1));
}

function go(line, column) {
  const all = text.value.split("\n");
  const start = all.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const end = start + (all[line - 1]?.length ?? 0);
  text.focus({ preventScroll: true });
  text.setSelectionRange(Math.min(start + column - 1, end), end);
  const height = text.scrollHeight / all.length;
  text.scrollTop = Math.max(0, (line - 4) * height);
  text.scrollIntoView({ block: "nearest" });
}
