// A long text becomes an attached file with one click: one that was pasted, or a message that is
// too long to send. The text leaves the composer only when the server has the file.

import { add, remove } from "./uploads.js";

const form = document.getElementById("ask");
const text = document.getElementById("text");
const LONG = 5000; // characters: more than two pages
let pastedText = ""; // what the notice offers to attach
let moved = null; // { chip, words, start } of the text that was attached last

export function offerFiles() {
  text.addEventListener("paste", pasted);
  text.addEventListener("input", withdrawOffer);
  document.addEventListener("click", pressed);
}

// The server counts bytes; a Japanese character has three.
export const byteCount = (words) => new TextEncoder().encode(words).length;

export function showTooLong(percent) {
  pastedText = "";
  const actions = show(form.dataset.tooLong, "problem");
  actions.querySelector("[data-shorten]").dataset.shorten = percent;
}

function pasted(event) {
  const words = event.clipboardData?.getData("text/plain").replace(/\r\n?/g, "\n") ?? "";
  if (words.length < LONG) return;
  const { selectionStart: start, selectionEnd: end, value } = text;
  const rest = value.slice(0, start) + value.slice(end);
  if (byteCount(rest) + byteCount(words) > Number(form.dataset.most)) {
    event.preventDefault();
    attach(words, form.dataset.oversized);
  } else setTimeout(() => offer(words));
}

function offer(words) {
  if (!text.value.includes(words)) return;
  pastedText = words;
  const actions = show(form.dataset.pasted.replace("{}", words.length.toLocaleString(document.documentElement.lang)), "");
  actions.querySelector("[data-shorten]").hidden = true;
}

// An offer ends when the text that it is about is changed or deleted.
function withdrawOffer() {
  if (!pastedText || text.value.includes(pastedText)) return;
  pastedText = "";
  document.getElementById("notice").replaceChildren();
}

function show(sentence, level) {
  const notice = document.getElementById("notice");
  const actions = document.getElementById("long-text").content.firstElementChild.cloneNode(true);
  const words = Object.assign(document.createElement("span"), { textContent: sentence });
  notice.dataset.level = level;
  notice.replaceChildren(words, actions);
  return actions;
}

function pressed({ target }) {
  const button = target.closest?.("[data-attach-text], [data-shorten], [data-put-back]");
  if (!button) return;
  if ("attachText" in button.dataset) attach(pastedText || text.value, form.dataset.moved);
  else if ("putBack" in button.dataset) putBack();
  else shorten(Number(button.dataset.shorten));
}

function attach(words, sentence) {
  pastedText = "";
  if (!words.trim()) return;
  const file = new File([words], `${form.dataset.fileName}.txt`, { type: "text/plain" });
  add([file], { whenUploaded: (chip) => uploaded(chip, words, sentence) });
}

function uploaded(chip, words, sentence) {
  const start = text.value.indexOf(words);
  moved = { chip, words, start: start < 0 ? text.selectionStart : start };
  if (start >= 0) {
    text.setRangeText("", start, start + words.length, "end");
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const actions = show(sentence, "");
  for (const button of actions.children) button.hidden = !("putBack" in button.dataset);
}

function putBack() {
  const { chip, words, start } = moved;
  moved = null;
  remove(chip);
  const at = Math.min(start, text.value.length);
  text.setRangeText(words, at, at, "end");
  text.dispatchEvent(new Event("input", { bubbles: true }));
  document.getElementById("notice").replaceChildren();
  text.focus();
}

// Selects what is beyond the limit, so that one key deletes it.
function shorten(percent) {
  text.focus();
  text.setSelectionRange(Math.floor((text.value.length * percent) / 100), text.value.length);
}
