// Reads an answer aloud with the configured voice, or else with the browser's.

const MOST_CHARS = 180; // some voices stop in the middle of longer texts
const SENTENCE = /[^.!?。！？\n]+[.!?。！？]*\s*/g;
const SCRIPTS = [
  [/[\u3040-\u30ff]/, "ja-JP"],
  [/[\uac00-\ud7af]/, "ko-KR"],
  [/[\u4e00-\u9fff]/, "zh-CN"],
  [/[\u0400-\u04ff]/, "ru-RU"],
];
const voices = window.speechSynthesis;
let speaking = null; // the pressed button
let sound = null; // of the configured voice

export const speech = {
  isSupported: Boolean(voices && window.SpeechSynthesisUtterance),
  start() {
    addEventListener("pagehide", end);
  },
  toggle(button, answer) {
    const isSame = speaking === button;
    end();
    if (!isSame) begin(button, answer);
  },
};

function begin(button, answer) {
  if (button.dataset.voice) play(button, answer);
  else speak(button, answer);
}

// What the server can't read, the browser does.
function play(button, answer) {
  const mine = (sound = new Audio(button.dataset.voice));
  speaking = button;
  mark(button, true);
  mine.addEventListener("ended", () => sound === mine && end());
  const fallBack = () => {
    if (sound !== mine || mine.currentTime > 0) return;
    delete button.dataset.voice;
    end();
    if (speech.isSupported) speak(button, answer);
  };
  mine.addEventListener("error", fallBack);
  mine.play().catch(fallBack);
}

function speak(button, answer) {
  const pieces = split(spoken(answer));
  if (!pieces.length) return;
  speaking = button;
  mark(button, true);
  pieces.forEach((piece, at) => {
    const utterance = new SpeechSynthesisUtterance(piece);
    utterance.lang = language(piece);
    if (at === pieces.length - 1) utterance.onend = () => speaking === button && end();
    utterance.onerror = () => speaking === button && end();
    voices.speak(utterance);
  });
}

function end() {
  if (!speaking) return;
  const button = speaking;
  speaking = null;
  voices?.cancel();
  sound?.pause();
  sound = null;
  mark(button, false);
}

function mark(button, isOn) {
  const label = button.querySelector(".visually-hidden");
  button.dataset.start ??= label.textContent;
  button.setAttribute("aria-pressed", String(isOn));
  button.title = label.textContent = isOn ? button.dataset.stop : button.dataset.start;
}

// Code and buttons aren't read.
function spoken(answer) {
  const copy = answer.cloneNode(true);
  for (const part of copy.querySelectorAll("pre, button, svg, .visually-hidden")) part.remove();
  for (const block of copy.querySelectorAll("p, li, h1, h2, h3, h4, tr, br")) block.append("\n");
  return copy.textContent;
}

export function split(text) {
  const pieces = [];
  for (const sentence of text.match(SENTENCE) ?? []) {
    const words = sentence.trim();
    for (let at = 0; at < words.length; at += MOST_CHARS) pieces.push(words.slice(at, at + MOST_CHARS));
  }
  return pieces.filter(Boolean);
}

// A Japanese text has kana in nearly every sentence; other scripts name their language.
export function language(text) {
  const found = SCRIPTS.find(([script]) => script.test(text));
  const page = document.documentElement.lang;
  return found?.[1] ?? (page.startsWith("ja") ? "en-US" : page);
}
