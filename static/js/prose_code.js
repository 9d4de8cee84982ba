// Code of an answer: its language, tools, diagrams and previews.

import { drawDiagram } from "./diagrams.js";
import { button, confirm, copyText, download, element, find, isGrowing, label } from "./prose_parts.js";
import { makeFocusable } from "./prose_tables.js";
import { createFrame, send } from "./sandbox_frame.js";

const root = document.documentElement;
const WRAP = "ashiato-wrap";
const MAX_HEIGHT = 640;
const NAMES = {
  bash: "Bash", c: "C", "c++": "C++", "c#": "C#", cpp: "C++", cs: "C#", csharp: "C#", css: "CSS", csv: "CSV", go: "Go",
  html: "HTML", java: "Java", javascript: "JavaScript", js: "JavaScript", json: "JSON", jsx: "JSX", kotlin: "Kotlin",
  latex: "LaTeX", markdown: "Markdown", md: "Markdown", mermaid: "Mermaid", php: "PHP", powershell: "PowerShell",
  py: "Python", python: "Python", r: "R", rb: "Ruby", rs: "Rust", ruby: "Ruby", rust: "Rust", sh: "Shell", shell: "Shell",
  sql: "SQL", svg: "SVG", swift: "Swift", tex: "TeX", toml: "TOML", ts: "TypeScript", tsx: "TSX", typescript: "TypeScript",
  xml: "XML", yaml: "YAML", yml: "YAML",
};
const EXTENSIONS = {
  bash: "sh", "c++": "cpp", "c#": "cs", csharp: "cs", console: "txt", elixir: "ex", golang: "go", haskell: "hs",
  javascript: "js", kotlin: "kt", latex: "tex", markdown: "md", mermaid: "mmd", perl: "pl", powershell: "ps1",
  python: "py", python3: "py", ruby: "rb", rust: "rs", shell: "sh", typescript: "ts", yaml: "yml", zsh: "sh",
};
const FILES = { docker: "Dockerfile", dockerfile: "Dockerfile", make: "Makefile", makefile: "Makefile", nginx: "nginx.conf" };
const NAMED = /^\s*(?:#|\/\/|--|;|%|<!--|\/\*)\s*(?:file(?:name)?:\s*)?(?:[\w.-]+\/)*([\w-][\w.-]{0,60}\.\w{1,8})\s*(?:-->|\*\/)?\s*$/i;
const PREVIEWED = new Set(["html", "svg"]);
let dialog;

export function start() {
  if (kept() === "on") root.dataset.wrap = "";
  const again = () => document.querySelectorAll(".diagram[data-drawn]").forEach(redraw);
  document.addEventListener("change", ({ target }) => target.name === "theme" && again());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

export function addCodeTools(within) {
  for (const pre of find(within, ".prose pre.code")) {
    if (pre.closest(".code-block")) continue;
    const code = pre.querySelector("code");
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    const tools = element("span", "code-tools");
    const head = element("div", "code-head", element("span", "code-language", NAMES[language] ?? (language || label("text"))), tools);
    const block = element("div", "code-block");
    pre.replaceWith(block);
    block.append(head, pre);
    pre.querySelector(".copy-code")?.remove();
    if (!isGrowing(block)) addTools(block, tools, code, language);
  }
}

function addTools(block, tools, code, language) {
  const text = () => code.textContent;
  const isSvg = language === "xml" && /^\s*(?:<\?xml[^>]*>\s*)?<svg[\s>]/.test(text());
  if (language === "mermaid") addDiagram(block, tools, text());
  else if (PREVIEWED.has(language) || isSvg) addPreview(block, tools, text, isSvg ? "svg" : language);
  const wrap = button("wrap", "wrap", toggleWrap);
  code.tabIndex = 0; // it scrolls
  wrap.dataset.wrapLines = "";
  wrap.setAttribute("aria-pressed", String("wrap" in root.dataset));
  tools.append(
    wrap,
    button("download", "down", () => download(fileName(text(), isSvg ? "svg" : language), text(), "text/plain")),
    button("copy", "copy", async (made) => {
      await copyText(text());
      confirm(made);
    }),
  );
}

export function fileName(text, language) {
  const named = NAMED.exec(text.split("\n", 1)[0])?.[1];
  const safe = /^[a-z0-9]{1,12}$/.test(language) ? language : "txt";
  return named ?? FILES[language] ?? `snippet.${EXTENSIONS[language] ?? safe}`;
}

function toggleWrap() {
  const isOn = !("wrap" in root.dataset);
  if (isOn) root.dataset.wrap = "";
  else delete root.dataset.wrap;
  for (const each of document.querySelectorAll("[data-wrap-lines]")) each.setAttribute("aria-pressed", String(isOn));
  try {
    localStorage.setItem(WRAP, isOn ? "on" : "off");
  } catch {
    // Storage is disabled or full: the choice lasts as long as the page.
  }
}

function kept() {
  try {
    return localStorage.getItem(WRAP);
  } catch {
    return null; // storage is disabled
  }
}

// Switches between the code and what it makes.
function addSwitch(block, tools, name, show) {
  const both = [button(name, "", () => turn(true), { isText: true }), button("code", "", () => turn(false), { isText: true })];
  tools.append(element("span", "code-switch", ...both));
  function turn(isShown) {
    block.toggleAttribute("data-result", isShown);
    both[0].setAttribute("aria-pressed", String(isShown));
    both[1].setAttribute("aria-pressed", String(!isShown));
    show(isShown);
  }
  return turn;
}

// Diagrams

function addDiagram(block, tools, source) {
  const picture = element("div", "diagram", element("p", "diagram-note", label("drawing")));
  picture.setAttribute("aria-busy", "true");
  block.append(picture);
  const turn = addSwitch(block, tools, "diagram", () => {});
  const larger = button("larger", "expand", () => openLarger(label("diagram"), picture.querySelector("img").cloneNode()));
  larger.disabled = true;
  tools.append(larger);
  picture.start = () => draw(block, picture, source, turn, larger);
  turn(true);
  seen.observe(picture);
}

// Drawn when it comes into view: the library is large.
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    target.start();
  }
}, { rootMargin: "400px" });

function redraw(picture) {
  picture.start?.();
}

async function draw(block, picture, source, turn, larger) {
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
    picture.replaceChildren(element("p", "diagram-note", label("failed").replace("{}", error.message)));
    picture.dataset.failed = "";
    turn(false);
    for (const tool of [block.querySelector(".code-switch"), larger]) tool.remove();
  }
  picture.removeAttribute("aria-busy");
}

// Previews

const SVG_PAGE = "<!doctype html><meta charset=utf-8><style>body{margin:0;display:grid;place-items:center;min-height:100vh}svg{max-width:100%;height:auto}</style>";

function addPreview(block, tools, text, language) {
  const place = element("div", "preview");
  block.append(place);
  const page = () => (language === "svg" ? SVG_PAGE : "") + text();
  const turn = addSwitch(block, tools, "preview", (isShown) => {
    // A hidden page would go on running.
    place.replaceChildren(...(isShown ? [previewFrame(page()), element("p", "preview-note", label("isolated"))] : []));
  });
  turn(false);
  tools.append(button("larger", "expand", () => openLarger(label("preview"), previewFrame(page()), label("isolated"))));
}

function previewFrame(html) {
  const frame = createFrame(label("previewFrame"), label("preview"), (data) => {
    if (data.isReady) send(frame, { html });
    const height = Math.min(MAX_HEIGHT, Math.round(Number(data.height)));
    if (height > 0 && !frame.closest("dialog")) frame.height = String(Math.max(160, height));
  });
  return frame;
}

function openLarger(title, content, note = "") {
  dialog?.remove();
  const close = button("close", "close", () => dialog.close());
  dialog = element("dialog", "larger", element("header", "", element("h2", "", title), close), element("div", "larger-content", content));
  if (note) dialog.append(element("p", "preview-note", note));
  dialog.setAttribute("aria-label", title);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
