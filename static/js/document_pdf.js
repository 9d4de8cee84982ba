// Displays the pages of a PDF and marks the linked passage in them. Scripts and forms in it are
// never executed: only its picture and its text are used.

import { passageIndexes } from "./passage_match.js";
import { readStored, writeStored } from "./storage.js";

const VIEW_KEY = "ashiato-document-view";
const DRAW_MARGIN = "1200px"; // how far from the screen pages are drawn
const MAX_DRAWN = 12; // canvases take memory
const MAX_PIXELS = 16_000_000;
const box = document.getElementById("pdf");
const status = box.querySelector(".pdf-status");
const drawings = new Map(); // page number → what is drawn of it
let resizeTimer;
let pdfjs;
let pdf;
let isStarted = false;
let isScrolledToPassage = false;

for (const choice of document.querySelectorAll("#document-view input")) choice.addEventListener("change", onViewChange);
document.querySelector(".document-index")?.addEventListener("click", onIndexClick);
const savedChoice = document.querySelector(`#document-view input[value="${readStored(VIEW_KEY, "sessionStorage")}"]`);
if (savedChoice) savedChoice.checked = true;
if (isVisible()) showPdf();

function onViewChange({ target }) {
  writeStored(VIEW_KEY, target.value, "sessionStorage");
  if (isVisible()) showPdf();
}

function isVisible() {
  return document.querySelector('#document-view input[value="original"]').checked;
}

async function showPdf() {
  if (isStarted) return;
  isStarted = true;
  status.textContent = box.dataset.loading;
  try {
    await openPdf();
    status.textContent = "";
  } catch (error) {
    showFailure(error);
  }
}

async function openPdf() {
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
  // Pages have their size before they are drawn, so that nothing jumps.
  const first = (await pdf.getPage(1)).getViewport({ scale: 1 });
  // A wide page scrolls the box, a narrow one everything.
  const root = getComputedStyle(box).overflowY === "auto" ? box : null;
  const observer = new IntersectionObserver(onIntersect, { root, rootMargin: DRAW_MARGIN });
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
  addEventListener("resize", onResize);
}

function goTo(number, isSmooth) {
  const page = document.getElementById(`pdf-page-${Math.min(Math.max(number, 1), pdf.numPages)}`);
  if (number > 1 || isSmooth) page?.scrollIntoView({ block: "start", behavior: isSmooth ? "smooth" : "auto" });
}

function onIndexClick(event) {
  const link = event.target.closest("a[data-part]");
  if (!link || !pdf || !isVisible() || link.search.includes("start=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  document.querySelector(".document-index [aria-current]")?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  goTo(Number(link.dataset.part), true);
}

function onIntersect(entries) {
  for (const { target, isIntersecting } of entries) {
    const number = Number(target.dataset.number);
    if (isIntersecting) drawPage(target, number);
    else if (drawings.size > MAX_DRAWN) clearPage(target, number);
  }
}

function clearPage(target, number) {
  drawings.get(number)?.task?.cancel();
  drawings.delete(number);
  target.replaceChildren();
}

async function drawPage(target, number) {
  if (drawings.has(number)) return;
  const drawing = {};
  drawings.set(number, drawing);
  try {
    const page = await pdf.getPage(number);
    const unscaled = page.getViewport({ scale: 1 });
    target.style.aspectRatio = `${unscaled.width} / ${unscaled.height}`;
    const scale = target.clientWidth / unscaled.width;
    const viewport = page.getViewport({ scale });
    const ratio = Math.min(devicePixelRatio || 1, Math.sqrt(MAX_PIXELS / (viewport.width * viewport.height)));
    const canvas = document.createElement("canvas");
    canvas.width = Math.floor(viewport.width * ratio);
    canvas.height = Math.floor(viewport.height * ratio);
    target.replaceChildren(canvas);
    drawing.task = page.render({ canvas, viewport, transform: [ratio, 0, 0, ratio, 0, 0], annotationMode: pdfjs.AnnotationMode.DISABLE });
    await drawing.task.promise;
    await addTextLayer(target, page, viewport, number);
  } catch (error) {
    if (error?.name !== "RenderingCancelledException") showFailure(error);
  }
}

async function addTextLayer(target, page, viewport, number) {
  const layer = document.createElement("div");
  layer.className = "pdf-layer";
  target.style.setProperty("--total-scale-factor", viewport.scale);
  const text = new pdfjs.TextLayer({ textContentSource: page.streamTextContent(), container: layer, viewport });
  await text.render();
  target.append(layer);
  const linked = Number(box.dataset.part);
  if (box.dataset.passage && (number === linked || number === linked + 1)) markPassage(text.textDivs, number === linked);
}

// The passage may go on at the next page; only its beginning is scrolled to.
function markPassage(pieces, isFirst) {
  const hits = passageIndexes(pieces.map((piece) => piece.textContent), box.dataset.passage);
  for (const index of hits) pieces[index].classList.add("pdf-hit");
  if (!isFirst || isScrolledToPassage || !hits.length) return;
  isScrolledToPassage = true;
  pieces[hits[0]].scrollIntoView({ block: "center", inline: "nearest" });
}

function onResize() {
  clearTimeout(resizeTimer);
  resizeTimer = setTimeout(() => {
    for (const page of box.querySelectorAll(".pdf-page")) {
      const number = Number(page.dataset.number);
      const width = page.querySelector("canvas") && page.clientWidth;
      if (!width) continue;
      clearPage(page, number);
      drawPage(page, number);
    }
  }, 250);
}

function showFailure(error) {
  console.debug(error);
  box.dataset.broken = "";
  status.textContent = box.dataset.failed;
  const text = document.querySelector('#document-view input[value="text"]');
  if (!pdf) text.click();
}
