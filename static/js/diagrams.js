// Diagrams, drawn one after the other in a hidden sandboxed frame that only returns SVG. It is
// displayed as an image, in which nothing can run or load.

import { isDark } from "./color_scheme.js";
import { label } from "./prose_parts.js";
import { createFrame, sendToFrame } from "./sandbox_frame.js";

const DEADLINE_MS = 30_000;
const MAX_SIDE = 8_000;
const MAX_SVG = 2_000_000;
const requests = new Map();
const pictures = new Map(); // a finished run is rendered again, with the same diagrams
const MAX_DRAWN = 40;
let frame;
let frameReady;
let requestCount = 0;
let lastDrawing = Promise.resolve(); // a slow one doesn't use up the time of the next

export async function drawDiagram(source) {
  const key = `${isDark()}\n${source}`;
  if (!pictures.has(key)) {
    lastDrawing = lastDrawing.catch(() => {}).then(() => requestDiagram(source));
    const picture = await lastDrawing;
    if (pictures.size >= MAX_DRAWN) pictures.delete(pictures.keys().next().value);
    pictures.set(key, picture);
  }
  return pictures.get(key);
}

async function requestDiagram(source) {
  await connectFrame();
  const id = String((requestCount += 1));
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      frame.remove(); // it may never return, so the next one gets another
      settleRequest(id, { error: label("slow") });
    }, DEADLINE_MS);
    requests.set(id, { resolve, reject, timer });
    sendToFrame(frame, { id, diagram: source, isDark: isDark() });
  });
}

function connectFrame() {
  if (frame?.isConnected) return frameReady;
  frameReady = new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      frame.remove();
      reject(new Error(label("slow")));
    }, DEADLINE_MS);
    frame = createFrame(label("diagramFrame"), label("diagram"), (data) => {
      if (data.isReady) {
        clearTimeout(timer);
        resolve();
      } else settleRequest(data.id, data);
    });
  });
  frame.classList.add("sandbox-drawing");
  frame.tabIndex = -1;
  frame.setAttribute("aria-hidden", "true");
  document.body.append(frame);
  return frameReady;
}

function settleRequest(id, { svg, width, height, error }) {
  const request = requests.get(id);
  if (!request) return;
  requests.delete(id);
  clearTimeout(request.timer);
  if (typeof svg !== "string" || svg.length > MAX_SVG) request.reject(new Error(String(error ?? label("slow"))));
  else request.resolve({ svg, width: clampSide(width), height: clampSide(height) });
}

const clampSide = (value) => Math.max(1, Math.min(MAX_SIDE, Math.round(Number(value) || 1)));
