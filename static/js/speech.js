// Reads an answer aloud with the configured voice, or else with the browser's.

import { languageOf, splitText } from "./speech_text.js";

const voices = window.speechSynthesis;
let activeButton = null; // the pressed button
let audio = null; // of the configured voice

export const speech = {
  isSupported: Boolean(voices && window.SpeechSynthesisUtterance),
  start() {
    addEventListener("pagehide", stopSpeaking);
  },
  toggle(button, answer) {
    const isSame = activeButton === button;
    stopSpeaking();
    if (isSame) return;
    if (button.dataset.voice) playVoice(button, answer);
    else speakText(button, answer);
  },
};

// What the server can't read, the browser does.
function playVoice(button, answer) {
  const ownSound = (audio = new Audio(button.dataset.voice));
  activeButton = button;
  setPressed(button, true);
  ownSound.addEventListener("ended", () => audio === ownSound && stopSpeaking());
  const fallBack = () => {
    if (audio !== ownSound || ownSound.currentTime > 0) return;
    delete button.dataset.voice;
    stopSpeaking();
    if (speech.isSupported) speakText(button, answer);
  };
  ownSound.addEventListener("error", fallBack);
  ownSound.play().catch(fallBack);
}

function speakText(button, answer) {
  // Code and buttons aren't read.
  const copy = answer.cloneNode(true);
  for (const part of copy.querySelectorAll("pre, button, svg, .visually-hidden")) part.remove();
  for (const block of copy.querySelectorAll("p, li, h1, h2, h3, h4, tr, br")) block.append("\n");
  const pieces = splitText(copy.textContent);
  if (!pieces.length) return;
  activeButton = button;
  setPressed(button, true);
  pieces.forEach((piece, index) => {
    const utterance = new SpeechSynthesisUtterance(piece);
    utterance.lang = languageOf(piece, document.documentElement.lang);
    if (index === pieces.length - 1) utterance.onend = () => activeButton === button && stopSpeaking();
    utterance.onerror = () => activeButton === button && stopSpeaking();
    voices.speak(utterance);
  });
}

function stopSpeaking() {
  if (!activeButton) return;
  const button = activeButton;
  activeButton = null;
  voices?.cancel();
  audio?.pause();
  audio = null;
  setPressed(button, false);
}

function setPressed(button, isOn) {
  const label = button.querySelector("span");
  button.dataset.start ??= label.textContent;
  button.setAttribute("aria-pressed", String(isOn));
  label.textContent = isOn ? button.dataset.stop : button.dataset.start;
}
