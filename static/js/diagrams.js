// Diagrams, drawn one after the other in a hidden sandboxed frame that only returns SVG. It is
// displayed as an image, in which nothing can run or load.

import { label } from "./prose_parts.js";
import { createFrame, send } from "./sandbox_frame.js";

const DEADLINE = 30_000;
const MAX_SIDE = 8_000;
const MAX_SVG = 2_000_000;
const waiting = new Map();
const drawn = new Map(); // a finished run is rendered again, with the same diagrams
const MAX_DRAWN = 40;
let frame;
let ready;
let count = 0;
let last = Promise.resolve(); // a slow one doesn't use up the time of the next

export const isDark = () => {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};

export async function drawDiagram(source) {
  const key = `${isDark()}\n${source}`;
  if (!drawn.has(key)) {
    last = last.catch(() => {}).then(() => ask(source));
    const picture = await last;
    if (drawn.size >= MAX_DRAWN) drawn.delete(drawn.keys().next().value);
    drawn.set(key, picture);
  }
  return drawn.get(key);
}

async function ask(source) {
  await connect();
  const id = String((count += 1));
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      frame.remove(); // it may never return, so the next one gets another
      end(id, { error: label("slow") });
    }, DEADLINE);
    waiting.set(id, { resolve, reject, timer });
    send(frame, { id, diagram: source, isDark: isDark() });
  });
}

function connect() {
  if (frame?.isConnected) return ready;
  ready = new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      frame.remove();
      reject(new Error(label("slow")));
    }, DEADLINE);
    frame = createFrame(label("diagramFrame"), label("diagram"), (data) => {
      if (data.isReady) {
        clearTimeout(timer);
        resolve();
      } else end(data.id, data);
    });
  });
  frame.classList.add("sandbox-drawing");
  frame.tabIndex = -1;
  frame.setAttribute("aria-hidden", "true");
  document.body.append(frame);
  return ready;
}

function end(id, { svg, width, height, error }) {
  const asked = waiting.get(id);
  if (!asked) return;
  waiting.delete(id);
  clearTimeout(asked.timer);
  if (typeof svg !== "string" || svg.length > MAX_SVG) asked.reject(new Error(String(error ?? label("slow"))));
  else asked.resolve({ svg, width: side(width), height: side(height) });
}

const side = (value) => Math.max(1, Math.min(MAX_SIDE, Math.round(Number(value) || 1)));
