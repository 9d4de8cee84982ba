// Records a voice message. It becomes an attached file; where recordings are transcribed, the
// words are put into the composer, to be checked before they are sent.

import { audioExtension, chooseAudioType } from "./audio_types.js";
import { isComposing } from "./keys.js";
import { replaceRange } from "./text_fields.js";
import { addFiles, updateChip } from "./uploads.js";

const form = document.getElementById("ask");
const recorderElement = form?.querySelector(".record");
const texts = recorderElement?.dataset ?? {};
const panel = recorderElement?.querySelector(".recording");
const TICK_MS = 120;
const BITS_PER_SECOND = 48_000;
const twoDigits = (number) => String(number).padStart(2, "0");
let active = null; // { recorder, stream, chunks, started, timer, level, isWanted, isEnding }

export function startRecorder() {
  if (!recorderElement) return;
  const button = recorderElement.querySelector("[data-record]");
  button.addEventListener("click", onRecord);
  button.disabled = false; // until then a click would be lost
  recorderElement.querySelector("[data-done]").addEventListener("click", () => endRecording(true));
  recorderElement.querySelector("[data-discard]").addEventListener("click", () => endRecording(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || isComposing(event)) return;
    event.preventDefault();
    event.stopPropagation();
    endRecording(false);
  });
  addEventListener("pagehide", () => active && endRecording(false));
}

async function onRecord() {
  if (active) return;
  if (!window.isSecureContext) return showNotice(texts.insecure);
  if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) return showNotice(texts.unsupported);
  const type = chooseAudioType((type) => MediaRecorder.isTypeSupported(type), navigator.userAgent);
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
    startRecording(stream, type);
  } catch (error) {
    showNotice(errorText(error));
  }
}

function errorText({ name }) {
  if (name === "NotAllowedError" || name === "SecurityError") return texts.denied;
  if (name === "NotFoundError" || name === "OverconstrainedError") return texts.missing;
  return name === "NotReadableError" || name === "AbortError" ? texts.busy : texts.unsupported;
}

function startRecording(stream, type) {
  const recorder = new MediaRecorder(stream, { ...(type && { mimeType: type }), audioBitsPerSecond: BITS_PER_SECOND });
  active = { recorder, stream, chunks: [], started: performance.now(), isWanted: false, level: createLevelMeter(stream) };
  recorder.addEventListener("dataavailable", ({ data }) => data.size && active?.chunks.push(data));
  recorder.addEventListener("stop", onStop);
  recorder.addEventListener("error", () => endRecording(false));
  for (const track of stream.getTracks()) track.addEventListener("ended", () => endRecording(true));
  recorder.start(1000);
  active.timer = setInterval(updatePanel, TICK_MS);
  form.toggleAttribute("data-recording", true);
  panel.hidden = false;
  showNotice("");
  announce(texts.started);
  updatePanel();
  recorderElement.querySelector("[data-done]").focus();
}

// The loudest sample of the last moment, so that one sees whether the microphone hears.
function createLevelMeter(stream) {
  try {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    analyser.fftSize = 1024;
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    return {
      read() {
        analyser.getFloatTimeDomainData(samples);
        return Math.min(1, Math.sqrt(Math.max(...samples.map(Math.abs))));
      },
      close: () => context.close(),
    };
  } catch {
    return { read: () => 0, close() {} };
  }
}

function updatePanel() {
  const seconds = Math.floor((performance.now() - active.started) / 1000);
  recorderElement.querySelector("[data-time]").textContent = `${Math.floor(seconds / 60)}:${twoDigits(seconds % 60)}`;
  recorderElement.querySelector("[data-level]").value = active.level.read();
  if (seconds < Number(texts.limit)) return;
  endRecording(true);
  showNotice(texts.full);
}

function endRecording(isWanted) {
  if (!active || active.isEnding) return;
  active.isEnding = true;
  active.isWanted = isWanted;
  clearInterval(active.timer);
  if (active.recorder.state === "inactive") onStop();
  else active.recorder.stop();
}

function onStop() {
  const { recorder, stream, chunks, isWanted, isEnding, level } = active;
  for (const track of stream.getTracks()) track.stop();
  level.close();
  clearInterval(active.timer);
  active = null;
  form.toggleAttribute("data-recording", false);
  panel.hidden = true;
  document.getElementById("text").focus({ preventScroll: true });
  if (!(isWanted || !isEnding) || !chunks.length) return announce(texts.cancelled);
  const type = (recorder.mimeType || chunks[0].type).split(";")[0];
  const now = new Date();
  const date = [now.getFullYear(), ...[now.getMonth() + 1, now.getDate()].map(twoDigits)].join("-");
  const time = [now.getHours(), now.getMinutes(), now.getSeconds()].map(twoDigits).join(".");
  const file = new File(chunks, `${texts.name} ${date} ${time}.${audioExtension(type)}`, { type });
  addFiles([file], { whenRead: texts.transcribes === undefined ? null : insertTranscript });
}

async function insertTranscript(chip) {
  if (chip.state !== "ready") return;
  const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  const url = `${form.querySelector(".attach").dataset.uploads}${chip.id}/dictate/`;
  const response = await fetch(url, { method: "POST", headers }).catch(() => null);
  if (!response?.ok) return;
  const { text, file } = await response.json();
  updateChip(chip, file);
  const field = document.getElementById("text");
  const before = field.value.slice(0, field.selectionStart);
  const space = before && !/\s$/.test(before) ? " " : "";
  replaceRange(field, space + text, field.selectionStart, field.selectionEnd);
  field.focus({ preventScroll: true });
  announce(texts.inserted);
}

function showNotice(message) {
  const element = document.getElementById("notice");
  element.textContent = message;
  element.dataset.level = message ? "problem" : "";
}

function announce(message) {
  document.getElementById("announcer").textContent = message;
}
