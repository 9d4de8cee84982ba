// Displays the pages of a PDF and marks the linked passage in them. Scripts and forms in it are
// never executed: only its picture and its text are used.

import { isPlainClick } from "./keys.js";
import { passageIndexes } from "./passage_match.js";
import { readStored, writeStored } from "./storage.js";

const VIEW_KEY = "ashiato-document-view";
const DRAW_MARGIN = "1200px"; // how far from the screen pages are drawn
const MAX_DRAWN = 12; // canvases take memory
const MAX_PIXELS = 16_000_000;

export class PdfView {
  drawings = new Map(); // page number → what is drawn of it
  isStarted = false;
  isScrolledToPassage = false;
  width = 0;

  constructor(within) {
    this.within = within;
    this.box = within.querySelector("#pdf");
    this.status = this.box.querySelector(".pdf-status");
    const choices = [...within.querySelectorAll("#document-view input")];
    for (const choice of choices) choice.addEventListener("change", () => this.onViewChange(choice));
    within.querySelector(".document-index")?.addEventListener("click", (event) => this.onIndexClick(event));
    const saved = choices.find(({ value }) => value === readStored(VIEW_KEY, "sessionStorage"));
    if (saved) saved.checked = true;
    if (this.isVisible()) this.show();
  }

  close() {
    this.resizeObserver?.disconnect();
    this.pageObserver?.disconnect();
    this.loading?.destroy(); // also its worker
  }

  onViewChange({ value }) {
    writeStored(VIEW_KEY, value, "sessionStorage");
    if (this.isVisible()) this.show();
  }

  isVisible() {
    return this.within.querySelector('#document-view input[value="original"]').checked;
  }

  async show() {
    if (this.isStarted) return;
    this.isStarted = true;
    this.status.textContent = this.box.dataset.loading;
    try {
      await this.open();
      this.status.textContent = "";
    } catch (error) {
      this.showFailure(error);
    }
  }

  async open() {
    const { box } = this;
    const library = new URL(box.dataset.library, location.href).href;
    this.pdfjs = await import(`${library}pdf.min.mjs`);
    this.pdfjs.GlobalWorkerOptions.workerSrc = `${library}pdf.worker.min.mjs`;
    this.loading = this.pdfjs.getDocument({
      url: box.dataset.url,
      cMapUrl: `${library}cmaps/`,
      cMapPacked: true,
      standardFontDataUrl: `${library}standard_fonts/`,
      wasmUrl: `${library}wasm/`,
      useWasm: false, // the page's policy allows no WebAssembly
      enableXfa: false,
      disableAutoFetch: true,
      isOffscreenCanvasSupported: false,
      verbosity: this.pdfjs.VerbosityLevel.ERRORS,
    });
    this.pdf = await this.loading.promise;
    // Pages have their size before they are drawn, so that nothing jumps.
    const first = (await this.pdf.getPage(1)).getViewport({ scale: 1 });
    for (let number = 1; number <= this.pdf.numPages; number += 1) {
      const page = document.createElement("div");
      page.className = "pdf-page";
      page.id = `pdf-page-${number}`;
      page.dataset.number = number;
      page.setAttribute("role", "group");
      page.setAttribute("aria-label", box.dataset.page.replace("{}", number));
      page.style.aspectRatio = `${first.width} / ${first.height}`;
      box.append(page);
    }
    this.goTo(Number(box.dataset.part), false);
    // A wide page scrolls the box, a narrow one everything.
    const root = getComputedStyle(box).overflowY === "auto" ? box : null;
    const margins = { rootMargin: DRAW_MARGIN, scrollMargin: DRAW_MARGIN }; // the second for the panel, which scrolls
    this.pageObserver = new IntersectionObserver((entries) => this.onIntersect(entries), { root, ...margins });
    for (const page of this.pages()) this.pageObserver.observe(page);
    this.resizeObserver = new ResizeObserver(() => this.onResize());
    this.resizeObserver.observe(box);
  }

  pages() {
    return this.box.querySelectorAll(".pdf-page");
  }

  goTo(number, isSmooth) {
    const page = this.pages()[Math.min(Math.max(number, 1), this.pdf.numPages) - 1];
    if (number > 1 || isSmooth) page?.scrollIntoView({ block: "start", behavior: isSmooth ? "smooth" : "auto" });
  }

  onIndexClick(event) {
    const link = event.target.closest("a[data-part]");
    if (!link || !this.pdf || !this.isVisible() || link.search.includes("start=") || !isPlainClick(event)) return;
    event.preventDefault();
    this.within.querySelector(".document-index [aria-current]")?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    this.goTo(Number(link.dataset.part), true);
  }

  onIntersect(entries) {
    for (const { target, isIntersecting } of entries) {
      const number = Number(target.dataset.number);
      if (isIntersecting) this.drawPage(target, number);
      else if (this.drawings.size > MAX_DRAWN) this.clearPage(target, number);
    }
  }

  clearPage(target, number) {
    this.drawings.get(number)?.task?.cancel();
    this.drawings.delete(number);
    target.replaceChildren();
  }

  async drawPage(target, number) {
    if (this.drawings.has(number)) return;
    const drawing = {};
    this.drawings.set(number, drawing);
    try {
      const page = await this.pdf.getPage(number);
      const unscaled = page.getViewport({ scale: 1 });
      target.style.aspectRatio = `${unscaled.width} / ${unscaled.height}`;
      const scale = target.clientWidth / unscaled.width;
      const viewport = page.getViewport({ scale });
      const ratio = Math.min(devicePixelRatio || 1, Math.sqrt(MAX_PIXELS / (viewport.width * viewport.height)));
      const canvas = document.createElement("canvas");
      canvas.width = Math.floor(viewport.width * ratio);
      canvas.height = Math.floor(viewport.height * ratio);
      target.replaceChildren(canvas);
      const transform = [ratio, 0, 0, ratio, 0, 0];
      drawing.task = page.render({ canvas, viewport, transform, annotationMode: this.pdfjs.AnnotationMode.DISABLE });
      await drawing.task.promise;
      await this.addTextLayer(target, page, viewport, number);
    } catch (error) {
      if (error?.name !== "RenderingCancelledException" && this.box.isConnected) this.showFailure(error);
    }
  }

  async addTextLayer(target, page, viewport, number) {
    const layer = document.createElement("div");
    layer.className = "pdf-layer";
    target.style.setProperty("--total-scale-factor", viewport.scale);
    const text = new this.pdfjs.TextLayer({ textContentSource: page.streamTextContent(), container: layer, viewport });
    await text.render();
    target.append(layer);
    const linked = Number(this.box.dataset.part);
    const mayHavePassage = this.box.dataset.passage && (number === linked || number === linked + 1);
    if (mayHavePassage) this.markPassage(text.textDivs, number === linked);
  }

  // The passage may go on at the next page; only its beginning is scrolled to.
  markPassage(pieces, isFirst) {
    const hits = passageIndexes(pieces.map((piece) => piece.textContent), this.box.dataset.passage);
    for (const index of hits) pieces[index].classList.add("pdf-hit");
    if (!isFirst || this.isScrolledToPassage || !hits.length) return;
    this.isScrolledToPassage = true;
    pieces[hits[0]].scrollIntoView({ block: "center", inline: "nearest" });
  }

  // Drawn again when the window or the panel has another width.
  onResize() {
    const width = this.box.clientWidth;
    if (!width || width === this.width) return;
    const isFirst = !this.width;
    this.width = width;
    clearTimeout(this.resizeTimer);
    if (!isFirst) this.resizeTimer = setTimeout(() => this.redraw(), 250);
  }

  redraw() {
    for (const page of this.pages()) {
      if (!page.querySelector("canvas") || !page.clientWidth) continue;
      const number = Number(page.dataset.number);
      this.clearPage(page, number);
      this.drawPage(page, number);
    }
  }

  showFailure(error) {
    console.debug(error);
    this.box.dataset.broken = "";
    this.status.textContent = this.box.dataset.failed;
    if (!this.pdf) this.within.querySelector('#document-view input[value="text"]').click();
  }
}
