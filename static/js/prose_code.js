// Code of an answer: its language, tools, diagrams and previews.

import { copyText } from "./clipboard.js";
import { fileName, LANGUAGE_NAMES } from "./code_languages.js";
import { drawDiagram } from "./diagrams.js";
import { createButton, createElement, download, isGrowing, label, selectAll, showDone } from "./prose_parts.js";
import { makeFocusable } from "./prose_tables.js";
import { createFrame, sendToFrame } from "./sandbox_frame.js";
import { openContent } from "./side_panel.js";
import { readStored, writeStored } from "./storage.js";

const root = document.documentElement;
const WRAP_KEY = "ashiato-wrap";
const PREVIEWED = new Set(["html", "svg"]);

export function startCodeTools() {
  if (readStored(WRAP_KEY) === "on") root.dataset.wrap = "";
  const redrawAll = () => document.querySelectorAll(".diagram[data-drawn]").forEach((picture) => picture.start?.());
  document.addEventListener("change", ({ target }) => target.name === "theme" && redrawAll());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

export function addCodeTools(within) {
  for (const pre of selectAll(within, ".prose pre.code")) {
    if (pre.closest(".code-block")) continue;
    const code = pre.querySelector("code");
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    const tools = createElement("span", "code-tools");
    const head = createElement("div", "code-head", createElement("span", "code-language", LANGUAGE_NAMES[language] ?? (language || label("text"))), tools);
    const block = createElement("div", "code-block");
    pre.replaceWith(block);
    block.append(head, pre);
    pre.querySelector(".copy-code")?.remove();
    if (!isGrowing(block)) addTools(block, tools, code, language);
  }
}

function addTools(block, tools, code, language) {
  const text = () => code.textContent;
  const isSvg = language === "xml" && /^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/.test(text());
  // A page in another site's page can't have the frames for them.
  if (language === "mermaid" && label("diagramFrame")) addDiagram(block, tools, text());
  else if ((PREVIEWED.has(language) || isSvg) && label("previewFrame")) addPreview(tools, text, isSvg ? "svg" : language);
  const wrap = createButton("wrap", "wrap", toggleWrap);
  code.tabIndex = 0; // it scrolls
  wrap.dataset.wrapLines = "";
  wrap.setAttribute("aria-pressed", String("wrap" in root.dataset));
  tools.append(
    wrap,
    createButton("download", "down", () => download(fileName(text(), isSvg ? "svg" : language), text(), "text/plain")),
    createButton("copy", "copy", async (button) => {
      await copyText(text());
      showDone(button);
    }),
  );
}

function toggleWrap() {
  const isOn = root.toggleAttribute("data-wrap");
  for (const button of document.querySelectorAll("[data-wrap-lines]")) button.setAttribute("aria-pressed", String(isOn));
  writeStored(WRAP_KEY, isOn ? "on" : "off");
}

// Switches between the code and its diagram.
function addSwitch(block, tools) {
  const resultButton = createButton("diagram", "", () => showResult(true), { isText: true });
  const codeButton = createButton("code", "", () => showResult(false), { isText: true });
  tools.append(createElement("span", "code-switch", resultButton, codeButton));
  function showResult(isShown) {
    block.toggleAttribute("data-result", isShown);
    resultButton.setAttribute("aria-pressed", String(isShown));
    codeButton.setAttribute("aria-pressed", String(!isShown));
  }
  return showResult;
}

// Diagrams

function addDiagram(block, tools, source) {
  const picture = createElement("div", "diagram", createElement("p", "diagram-note", label("drawing")));
  picture.setAttribute("aria-busy", "true");
  block.append(picture);
  const showResult = addSwitch(block, tools);
  const larger = createButton("larger", "expand", () => {
    const image = picture.querySelector("img").cloneNode();
    image.className = "side-panel-picture";
    openContent({ title: label("diagram"), content: image, from: larger });
  });
  larger.disabled = true;
  tools.append(larger);
  picture.start = () => drawInto(block, picture, source, showResult, larger);
  showResult(true);
  observer.observe(picture);
}

// Drawn when it comes into view: the library is large.
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    target.start();
  }
}, { rootMargin: "400px" });

async function drawInto(block, picture, source, showResult, larger) {
  try {
    const { svg, width, height } = await drawDiagram(source);
    const image = new Image(width, height);
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    image.alt = source.trim().slice(0, 300);
    image.style.setProperty("--width", `${width}px`);
    image.style.setProperty("--ratio", width / height);
    await image.decode();
    picture.replaceChildren(image);
    if (!("drawn" in picture.dataset)) makeFocusable(picture, "diagram");
    picture.dataset.drawn = "";
    larger.disabled = false;
  } catch (error) {
    if ("drawn" in picture.dataset) return; // keep the last good one
    picture.replaceChildren(createElement("p", "diagram-note", label("failed").replace("{}", error.message)));
    picture.dataset.failed = "";
    showResult(false);
    for (const tool of [block.querySelector(".code-switch"), larger]) tool.remove();
  }
  picture.removeAttribute("aria-busy");
}

// Previews

const SVG_PAGE = "<!doctype html><meta charset=utf-8><style>body{margin:0;display:grid;place-items:center;min-height:100vh}svg{max-width:100%;height:auto}</style>";

function addPreview(tools, text, language) {
  const preview = createButton("preview", "", () => {
    const frame = previewFrame((language === "svg" ? SVG_PAGE : "") + text());
    openContent({ title: label("preview"), content: frame, note: label("isolated"), from: preview });
  }, { isText: true });
  tools.append(preview);
}

function previewFrame(html) {
  const frame = createFrame(label("previewFrame"), label("preview"), (data) => {
    if (data.isReady) sendToFrame(frame, { html });
  });
  return frame;
}
