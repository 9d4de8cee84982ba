// Records a voice message. It becomes an attached file; where recordings are transcribed, the
// words are put into the composer, to be checked before they are sent.

import { isComposing } from "./keys.js";
import { add, refresh } from "./uploads.js";

const form = document.getElementById("ask");
const place = form?.querySelector(".record");
const told = place?.dataset ?? {};
const panel = place?.querySelector(".recording");
const TICK = 120;
const BITS = 48_000;
let active = null; // { recorder, stream, chunks, started, timer, meter }

export function offerRecording() {
  if (!place) return;
  const button = place.querySelector("[data-record]");
  button.addEventListener("click", begin);
  button.disabled = false; // until then a click would be lost
  place.querySelector("[data-done]").addEventListener("click", () => finish(true));
  place.querySelector("[data-discard]").addEventListener("click", () => finish(false));
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || isComposing(event)) return;
    event.preventDefault();
    event.stopPropagation();
    finish(false);
  });
  addEventListener("pagehide", () => active && finish(false));
}

// Safari also claims WebM, but can't play what it records; so MP4 comes first there.
export function chooseType(isSupported, agent) {
  const isSafari = /^((?!chrome|chromium|android|crios|fxios).)*safari/i.test(agent);
  const mp4 = ["audio/mp4", "audio/aac"];
  const webm = ["audio/webm;codecs=opus", "audio/webm", "audio/ogg;codecs=opus"];
  return (isSafari ? [...mp4, ...webm] : [...webm, ...mp4]).find(isSupported) ?? "";
}

async function begin() {
  if (active) return;
  if (!window.isSecureContext) return notice(told.insecure);
  if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) return notice(told.unsupported);
  const type = chooseType((each) => MediaRecorder.isTypeSupported(each), navigator.userAgent);
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
    record(stream, type);
  } catch (error) {
    notice(reason(error));
  }
}

function reason({ name }) {
  if (name === "NotAllowedError" || name === "SecurityError") return told.denied;
  if (name === "NotFoundError" || name === "OverconstrainedError") return told.missing;
  return name === "NotReadableError" || name === "AbortError" ? told.busy : told.unsupported;
}

function record(stream, type) {
  const recorder = new MediaRecorder(stream, { ...(type && { mimeType: type }), audioBitsPerSecond: BITS });
  active = { recorder, stream, chunks: [], started: performance.now(), isWanted: false, level: listen(stream) };
  recorder.addEventListener("dataavailable", ({ data }) => data.size && active?.chunks.push(data));
  recorder.addEventListener("stop", stopped);
  recorder.addEventListener("error", () => finish(false));
  for (const track of stream.getTracks()) track.addEventListener("ended", () => finish(true));
  recorder.start(1000);
  active.timer = setInterval(tick, TICK);
  form.toggleAttribute("data-recording", true);
  panel.hidden = false;
  notice("");
  announce(told.started);
  tick();
  place.querySelector("[data-done]").focus();
}

// The loudest sample of the last moment, so that one sees whether the microphone hears.
function listen(stream) {
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

function tick() {
  const seconds = Math.floor((performance.now() - active.started) / 1000);
  place.querySelector("[data-time]").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  place.querySelector("[data-level]").value = active.level.read();
  if (seconds < Number(told.limit)) return;
  finish(true);
  notice(told.full);
}

function finish(isWanted) {
  if (!active || active.isEnding) return;
  active.isEnding = true;
  active.isWanted = isWanted;
  clearInterval(active.timer);
  if (active.recorder.state === "inactive") stopped();
  else active.recorder.stop();
}

function stopped() {
  const { recorder, stream, chunks, isWanted, isEnding, level } = active;
  for (const track of stream.getTracks()) track.stop();
  level.close();
  clearInterval(active.timer);
  active = null;
  form.toggleAttribute("data-recording", false);
  panel.hidden = true;
  document.getElementById("text").focus({ preventScroll: true });
  if (!(isWanted || !isEnding) || !chunks.length) return announce(told.cancelled);
  const type = (recorder.mimeType || chunks[0].type).split(";")[0];
  const file = new File(chunks, fileName(type), { type });
  add([file], { whenRead: told.transcribes === undefined ? null : insert });
}

function fileName(type) {
  const now = new Date();
  const two = (number) => String(number).padStart(2, "0");
  const time = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())} ${two(now.getHours())}.${two(now.getMinutes())}.${two(now.getSeconds())}`;
  const ending = { "audio/mp4": "m4a", "audio/webm": "webm", "audio/ogg": "ogg", "audio/aac": "aac" }[type] ?? "webm";
  return `${told.name} ${time}.${ending}`;
}

async function insert(chip) {
  if (chip.state !== "ready") return;
  const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
  const url = `${form.querySelector(".attach").dataset.uploads}${chip.id}/dictate/`;
  const answer = await fetch(url, { method: "POST", headers }).catch(() => null);
  if (!answer?.ok) return;
  const { text, file } = await answer.json();
  refresh(chip, file);
  write(text);
  announce(told.inserted);
}

function write(text) {
  const field = document.getElementById("text");
  const before = field.value.slice(0, field.selectionStart);
  const gap = before && !/\s$/.test(before) ? " " : "";
  field.setRangeText(gap + text, field.selectionStart, field.selectionEnd, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus({ preventScroll: true });
}

function notice(words) {
  const line = document.getElementById("notice");
  line.textContent = words;
  line.dataset.level = words ? "problem" : "";
}

function announce(words) {
  document.getElementById("announcer").textContent = words;
}
