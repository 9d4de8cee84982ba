// A long text becomes an attached file with one click: one that was pasted, or a message that is
// too long to send. The text leaves the composer only when the server has the file.

import { replaceRange } from "./text_fields.js";
import { addFiles, removeChip } from "./uploads.js";

const form = document.getElementById("ask");
const text = document.getElementById("text");
const LONG_CHARS = 5000; // characters: more than two pages
let pastedText = ""; // what the notice offers to attach
let lastMoved = null; // { chip, content, start } of the text that was attached last

export function startLongText() {
  text.addEventListener("paste", onPaste);
  text.addEventListener("input", withdrawOffer);
  document.addEventListener("click", onClick);
}

// The server counts bytes; a Japanese character has three.
export const byteCount = (content) => new TextEncoder().encode(content).length;

export function showTooLong(percent) {
  pastedText = "";
  const actions = showNotice(form.dataset.tooLong, "problem");
  actions.querySelector("[data-shorten]").dataset.shorten = percent;
}

function onPaste(event) {
  const pasted = event.clipboardData?.getData("text/plain").replace(/\r\n?/g, "\n") ?? "";
  if (pasted.length < LONG_CHARS) return;
  const { selectionStart: start, selectionEnd: end, value } = text;
  const rest = value.slice(0, start) + value.slice(end);
  if (byteCount(rest) + byteCount(pasted) > Number(form.dataset.most)) {
    event.preventDefault();
    attachText(pasted, form.dataset.oversized);
  } else setTimeout(() => offerToAttach(pasted));
}

function offerToAttach(pasted) {
  if (!text.value.includes(pasted)) return;
  pastedText = pasted;
  const actions = showNotice(form.dataset.pasted.replace("{}", pasted.length.toLocaleString(document.documentElement.lang)), "");
  actions.querySelector("[data-shorten]").hidden = true;
}

// An offer ends when the text that it is about is changed or deleted.
function withdrawOffer() {
  if (!pastedText || text.value.includes(pastedText)) return;
  pastedText = "";
  document.getElementById("notice").replaceChildren();
}

function showNotice(sentence, level) {
  const notice = document.getElementById("notice");
  const actions = document.getElementById("long-text").content.firstElementChild.cloneNode(true);
  const message = Object.assign(document.createElement("span"), { textContent: sentence });
  notice.dataset.level = level;
  notice.replaceChildren(message, actions);
  return actions;
}

function onClick({ target }) {
  const button = target.closest?.("[data-attach-text], [data-shorten], [data-put-back]");
  if (!button) return;
  if ("attachText" in button.dataset) attachText(pastedText || text.value, form.dataset.moved);
  else if ("putBack" in button.dataset) putBack();
  else {
    // Selects what is beyond the limit, so that one key deletes it.
    text.focus();
    text.setSelectionRange(Math.floor((text.value.length * Number(button.dataset.shorten)) / 100), text.value.length);
  }
}

function attachText(content, sentence) {
  pastedText = "";
  if (!content.trim()) return;
  const file = new File([content], `${form.dataset.fileName}.txt`, { type: "text/plain" });
  addFiles([file], { whenUploaded: (chip) => moveToFile(chip, content, sentence) });
}

function moveToFile(chip, content, sentence) {
  const start = text.value.indexOf(content);
  lastMoved = { chip, content, start: start < 0 ? text.selectionStart : start };
  if (start >= 0) replaceRange(text, "", start, start + content.length);
  const actions = showNotice(sentence, "");
  for (const button of actions.children) button.hidden = !("putBack" in button.dataset);
}

function putBack() {
  const { chip, content, start } = lastMoved;
  lastMoved = null;
  removeChip(chip);
  const position = Math.min(start, text.value.length);
  replaceRange(text, content, position, position);
  document.getElementById("notice").replaceChildren();
  text.focus();
}
