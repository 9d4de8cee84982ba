// Displays the pages of a PDF and marks the linked passage in them. Scripts and forms in it are
// never executed: only its picture and its text are used.

import { marksOf } from "./passage_match.js";

const NEAR = "1200px"; // how far from the screen pages are drawn
const MAX_DRAWN = 12; // canvases take memory
const MAX_PIXELS = 16_000_000;
const box = document.getElementById("pdf");
const status = box.querySelector(".pdf-status");
const drawn = new Map(); // page number → what is drawn of it
let pdfjs;
let pdf;
let isStarted = false;
let isPlaced = false;

for (const choice of document.querySelectorAll("#document-view input")) choice.addEventListener("change", chosen);
document.querySelector(".document-index")?.addEventListener("click", followed);
restoreChoice();
if (isVisible()) start();

function chosen({ target }) {
  try {
    sessionStorage.setItem("ashiato-document-view", target.value);
  } catch {
    // Storage is disabled: the choice is for this page.
  }
  if (isVisible()) start();
}

function restoreChoice() {
  let kept;
  try {
    kept = sessionStorage.getItem("ashiato-document-view");
  } catch {
    return;
  }
  const input = document.querySelector(`#document-view input[value="${kept}"]`);
  if (input) input.checked = true;
}

function isVisible() {
  return document.querySelector('#document-view input[value="original"]').checked;
}

async function start() {
  if (isStarted) return;
  isStarted = true;
  status.textContent = box.dataset.loading;
  try {
    await open();
    status.textContent = "";
  } catch (error) {
    fail(error);
  }
}

async function open() {
  const library = new URL(box.dataset.library, location.href).href;
  pdfjs = await import(`${library}pdf.min.mjs`);
  pdfjs.GlobalWorkerOptions.workerSrc = `${library}pdf.worker.min.mjs`;
  pdf = await pdfjs.getDocument({
    url: box.dataset.url,
    cMapUrl: `${library}cmaps/`,
    cMapPacked: true,
    standardFontDataUrl: `${library}standard_fonts/`,
    wasmUrl: `${library}wasm/`,
    useWasm: false, // the page's policy allows no WebAssembly
    enableXfa: false,
    disableAutoFetch: true,
    isOffscreenCanvasSupported: false,
    verbosity: pdfjs.VerbosityLevel.ERRORS,
  }).promise;
  await layOut();
}

// Pages have their size before they are drawn, so that nothing jumps.
async function layOut() {
  const first = (await pdf.getPage(1)).getViewport({ scale: 1 });
  // A wide page scrolls the box, a narrow one everything.
  const root = getComputedStyle(box).overflowY === "auto" ? box : null;
  const observer = new IntersectionObserver(seen, { root, rootMargin: NEAR });
  for (let number = 1; number <= pdf.numPages; number += 1) {
    const page = document.createElement("div");
    page.className = "pdf-page";
    page.id = `pdf-page-${number}`;
    page.dataset.number = number;
    page.setAttribute("role", "group");
    page.setAttribute("aria-label", box.dataset.page.replace("{}", number));
    page.style.aspectRatio = `${first.width} / ${first.height}`;
    box.append(page);
  }
  goTo(Number(box.dataset.part), false);
  for (const page of box.querySelectorAll(".pdf-page")) observer.observe(page);
  addEventListener("resize", resized);
}

function goTo(number, isSmooth) {
  const page = document.getElementById(`pdf-page-${Math.min(Math.max(number, 1), pdf.numPages)}`);
  if (number > 1 || isSmooth) page?.scrollIntoView({ block: "start", behavior: isSmooth ? "smooth" : "auto" });
}

function followed(event) {
  const link = event.target.closest("a[data-part]");
  if (!link || !pdf || !isVisible() || link.search.includes("start=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.querySelector(".document-index [aria-current]")?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  goTo(Number(link.dataset.part), true);
}

function seen(entries) {
  for (const { target, isIntersecting } of entries) {
    const number = Number(target.dataset.number);
    if (isIntersecting) draw(target, number);
    else if (drawn.size > MAX_DRAWN) clear(target, number);
  }
}

function clear(target, number) {
  drawn.get(number)?.task?.cancel();
  drawn.delete(number);
  target.replaceChildren();
}

async function draw(target, number) {
  if (drawn.has(number)) return;
  const about = {};
  drawn.set(number, about);
  try {
    const page = await pdf.getPage(number);
    const bare = page.getViewport({ scale: 1 });
    target.style.aspectRatio = `${bare.width} / ${bare.height}`;
    const scale = target.clientWidth / bare.width;
    const viewport = page.getViewport({ scale });
    await paint(target, page, viewport, about);
    await addText(target, page, viewport, number);
  } catch (error) {
    if (error?.name !== "RenderingCancelledException") fail(error);
  }
}

async function paint(target, page, viewport, about) {
  const ratio = Math.min(devicePixelRatio || 1, Math.sqrt(MAX_PIXELS / (viewport.width * viewport.height)));
  const canvas = document.createElement("canvas");
  canvas.width = Math.floor(viewport.width * ratio);
  canvas.height = Math.floor(viewport.height * ratio);
  target.replaceChildren(canvas);
  about.task = page.render({ canvas, viewport, transform: [ratio, 0, 0, ratio, 0, 0], annotationMode: pdfjs.AnnotationMode.DISABLE });
  await about.task.promise;
}

async function addText(target, page, viewport, number) {
  const layer = document.createElement("div");
  layer.className = "pdf-layer";
  target.style.setProperty("--total-scale-factor", viewport.scale);
  const text = new pdfjs.TextLayer({ textContentSource: page.streamTextContent(), container: layer, viewport });
  await text.render();
  target.append(layer);
  const linked = Number(box.dataset.part);
  if (box.dataset.passage && (number === linked || number === linked + 1)) mark(text.textDivs, number === linked);
}

// The passage may go on at the next page; only its beginning is scrolled to.
function mark(pieces, isFirst) {
  const found = marksOf(pieces.map((piece) => piece.textContent), box.dataset.passage);
  for (const at of found) pieces[at].classList.add("pdf-hit");
  if (!isFirst || isPlaced || !found.length) return;
  isPlaced = true;
  pieces[found[0]].scrollIntoView({ block: "center", inline: "nearest" });
}

let soon;

function resized() {
  clearTimeout(soon);
  soon = setTimeout(() => {
    for (const page of box.querySelectorAll(".pdf-page")) {
      const number = Number(page.dataset.number);
      const width = page.querySelector("canvas") && page.clientWidth;
      if (!width) continue;
      clear(page, number);
      draw(page, number);
    }
  }, 250);
}

function fail(error) {
  console.debug(error);
  box.dataset.broken = "";
  status.textContent = box.dataset.failed;
  const text = document.querySelector('#document-view input[value="text"]');
  if (!pdf) text.click();
}
