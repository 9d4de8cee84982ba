// The panel beside a chat or a trace: a document at its passage, a file, an image, a diagram or a
// preview. Links stay links: without this script, or with a modified click, they open a tab.

import { isComposing, isPlainClick } from "./keys.js";
import { createElement, label } from "./prose_parts.js";
import { readStored, writeStored } from "./storage.js";

const root = document.documentElement;
const narrowScreen = matchMedia("(max-width: 56rem)");
const wideScreen = matchMedia("(min-width: 96rem)");
const WIDTH_KEY = "ashiato-side-panel";
const MIN_WIDTH = 320;
const KEY_STEP = 32;
const HEADERS = { "HX-Request": "true", "HX-Target": "side-panel" }; // for a page's part
const PASSAGE_PAGES = /^\/(?:library\/documents\/\d+|traces\/\d+\/sources\/\d+)\/$/;
const RUN_PAGE = /^\/traces\/\d+\/$/;
const SOURCES = ".evidence-sources a[href]:not(.moment)";
const CITATIONS = `a[data-evidence], ${SOURCES}`;
// What a full panel covers.
const COVERED = "body > :is(main, .sidebar, .skip-link)";
let panel;
let opener; // gets the focus back
let sources = []; // the links that the pager walks through
let current = -1; // the one that is open
let marked = []; // the links to it
let sidebarBefore = "";
let request;
let closeContent;

export function startSidePanel() {
  // At the window, after all others: it takes the clicks and keys that they leave.
  addEventListener("click", onClick);
  addEventListener("keydown", onKeydown);
  addEventListener("popstate", onPopstate);
}

function onClick(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || !isPlainClick(event) || !opensHere(link)) return;
  event.preventDefault();
  if (panel?.contains(link)) loadLink(link); // another page of the same document
  else openLink(link);
}

function opensHere(link) {
  if (link.origin !== location.origin || link.hasAttribute("download")) return false;
  if (link.closest("dialog, [data-tab]") || !link.closest("main, #side-panel, [popover]")) return false;
  return link.target === "_blank" || PASSAGE_PAGES.test(link.pathname) || Boolean(stepPage(link));
}

// Where the input and the result of a cited step are.
function stepPage(link) {
  const number = /^#step-(\d+)$/.exec(link.hash)?.[1];
  return number && RUN_PAGE.test(link.pathname) && link.matches(CITATIONS) ? `${link.pathname}steps/${number}/` : "";
}

function openLink(link) {
  link.closest("[popover]")?.hidePopover();
  const links = [...answerOf(link).querySelectorAll(SOURCES)].filter(opensHere);
  const wasOnlyRead = link.matches(SOURCES) && !isCited(link);
  sources = links.filter((source) => isCited(source) !== wasOnlyRead);
  showPanel(link);
  showSource(link, sources.findIndex(({ href }) => href === link.href));
}

const isCited = (link) => Boolean(link.querySelector(".evidence-number"));

const answerOf = (link) => link.closest(".run, article, main") ?? document;

// Opens what a page has already, such as a diagram.
export function openContent({ title, content, note = "", from }) {
  sources = [];
  showPanel(from);
  request?.abort();
  markSource(null, -1);
  showPage({ title, content: note ? [content, createElement("p", "side-panel-note", note)] : [content] });
  contentBox().focus({ preventScroll: true });
}

function showPanel(from) {
  if (!panel) createPanel();
  opener = from;
  keepInPlace(from, () => {
    panel.hidden = false;
    arrange();
  });
  addHistoryEntry();
}

function closePanel() {
  hidePanel();
  if (history.state?.sidePanel) history.back();
}

// On a narrow screen the panel covers the page, so Back closes it and Forward opens it again.
function addHistoryEntry() {
  if (!narrowScreen.matches || history.state?.sidePanel) return;
  history.scrollRestoration = "manual"; // the page may have grown meanwhile
  // The sheet of a step has closed: its entry becomes that of the panel.
  if (history.state?.sheet) history.replaceState({ sidePanel: true }, "");
  else history.pushState({ sidePanel: true }, "");
}

function onPopstate() {
  if (!panel || !narrowScreen.matches) return;
  const isEntry = Boolean(history.state?.sidePanel);
  if (!isEntry) history.scrollRestoration = "auto";
  if (isEntry && panel.hidden) presentOpener()?.click();
  else if (!isEntry && !panel.hidden) hidePanel();
}

function hidePanel() {
  request?.abort();
  leaveContent();
  markSource(null, -1);
  const link = presentOpener();
  keepInPlace(link, () => {
    panel.hidden = true;
    panel.removeAttribute("data-full");
    arrange();
  });
  (link ?? document.getElementById("text"))?.focus({ preventScroll: true });
}

// A run is rendered again when it ends, with the same links.
function presentOpener() {
  if (opener.isConnected) return opener;
  return [...document.querySelectorAll("main a[href]")].find((link) => link.href === opener.href);
}

// The text beside the panel becomes narrower or wider; what is being read stays where it is.
function keepInPlace(element, change) {
  const before = element?.getBoundingClientRect().top;
  change();
  if (element) scrollBy({ top: element.getBoundingClientRect().top - before, behavior: "instant" });
}

function arrange() {
  const isOpen = !panel.hidden;
  const isWide = panel.hasAttribute("data-full");
  root.toggleAttribute("data-side-panel", isOpen);
  foldSidebar(isOpen);
  for (const element of document.querySelectorAll(COVERED)) element.inert = isOpen && (isWide || narrowScreen.matches);
  panel.querySelector("[data-wide]").setAttribute("aria-pressed", String(isWide));
  if (isOpen) setWidth(Number(readStored(WIDTH_KEY)));
}

// On most screens there is no room for it, too.
function foldSidebar(isOpen) {
  if (isOpen && root.dataset.sidebar !== "folded" && !wideScreen.matches) {
    sidebarBefore = root.dataset.sidebar;
    root.dataset.sidebar = "folded";
  } else if (!isOpen && sidebarBefore) {
    root.dataset.sidebar = sidebarBefore;
    sidebarBefore = "";
  }
}

function createPanel() {
  panel = document.getElementById("side-panel-template").content.cloneNode(true).firstElementChild;
  panel.addEventListener("click", onPanelClick);
  panel.addEventListener("change", scrollToPlace); // from the original to the text
  const edge = panel.querySelector(".side-panel-edge");
  edge.addEventListener("pointerdown", (event) => edge.setPointerCapture(event.pointerId));
  edge.addEventListener("pointermove", (event) => {
    if (edge.hasPointerCapture(event.pointerId)) setWidth(root.clientWidth - event.clientX);
  });
  edge.addEventListener("lostpointercapture", saveWidth);
  edge.addEventListener("keydown", onEdgeKeydown);
  narrowScreen.addEventListener("change", arrange);
  document.body.append(panel);
}

function onPanelClick({ target }) {
  const stepButton = target.closest("[data-step]");
  if (stepButton) moveSource(Number(stepButton.dataset.step));
  if (target.closest("[data-close]")) closePanel();
  if (!target.closest("[data-wide]")) return;
  panel.toggleAttribute("data-full");
  arrange();
}

function onKeydown(event) {
  if (event.key !== "Escape" || !panel || panel.hidden || isComposing(event)) return;
  // It closes what is above the panel first; in the composer it closes lists and stops a run.
  if (document.querySelector("dialog:modal, :popover-open:not([popover=manual])")) return;
  const composer = event.target.closest?.(".composer");
  if (composer && (event.defaultPrevented || "live" in composer.dataset)) return;
  closePanel();
}

// Its width

function setWidth(width) {
  if (width) root.style.setProperty("--side-panel-width", `${Math.max(MIN_WIDTH, Math.round(width))}px`);
  const edge = panel.querySelector(".side-panel-edge");
  edge.ariaValueMin = String(MIN_WIDTH);
  edge.ariaValueMax = String(root.clientWidth);
  edge.ariaValueNow = String(panel.offsetWidth);
}

function saveWidth() {
  writeStored(WIDTH_KEY, String(panel.offsetWidth));
}

function onEdgeKeydown(event) {
  const direction = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
  if (!direction || isComposing(event)) return;
  event.preventDefault();
  setWidth(panel.offsetWidth + direction * KEY_STEP);
  saveWidth();
}

// The sources of an answer

function showSource(link, index) {
  markSource(link, index);
  return loadLink(link);
}

async function moveSource(step) {
  const button = document.activeElement;
  const index = (current + step + sources.length) % sources.length;
  await showSource(sources[index], index);
  button.focus();
}

// Marks its numbers in the answer, its row in the list and its place in the pager.
function markSource(source, index) {
  current = index;
  const pager = panel.querySelector(".side-panel-pager");
  pager.hidden = index < 0 || sources.length < 2;
  const status = pager.querySelector("[role=status]");
  status.textContent = status.dataset.count.replace("{}", index + 1).replace("{}", sources.length);
  for (const link of marked) link.removeAttribute("aria-current");
  marked = source ? [...answerOf(source).querySelectorAll(CITATIONS)].filter(({ href }) => href === source.href) : [];
  for (const link of marked) link.setAttribute("aria-current", "true");
}

// What it displays

async function loadLink(link) {
  const box = contentBox();
  request?.abort();
  const { signal } = (request = new AbortController());
  box.setAttribute("aria-busy", "true");
  let page;
  try {
    page = await readPage(link, signal);
  } catch (error) {
    if (signal.aborted) return;
    console.debug(error);
    page = { title: nameOf(link), content: [createElement("p", "side-panel-note", box.dataset.failed)] };
  }
  if (signal.aborted) return;
  showPage({ tab: link.dataset.panelHref || link.href, ...page });
  if (page.isDocument) {
    const { startDocument } = await import("./document_view.js");
    if (signal.aborted) return;
    closeContent = startDocument(panel);
  }
  scrollToPlace();
  (box.querySelector("#place") ?? box).focus({ preventScroll: true });
}

const contentBox = () => panel.querySelector(".side-panel-content");

// A number in the answer has its name in the list.
function nameOf(link) {
  const named = sources[current] ?? link;
  return named.querySelector("b")?.textContent ?? named.querySelector("img")?.alt ?? named.textContent.trim();
}

async function readPage(link, signal) {
  if (link.querySelector("img")) return mediaPage(link, "img");
  const step = stepPage(link);
  const response = await fetch(link.dataset.panelHref || step || link.href, { headers: HEADERS, signal });
  if (!response.ok) throw new Error(`${response.url}: HTTP ${response.status}`);
  const [type] = response.headers.get("Content-Type").split(";");
  if (type === "text/html") {
    const page = await readDocument(await response.text());
    return step ? { ...page, title: nameOf(link) } : page;
  }
  if (type === "text/plain") {
    return { title: label("text"), content: [createElement("pre", "side-panel-text", await response.text())], download: link.href };
  }
  response.body?.cancel();
  const tag = { image: "img", audio: "audio", video: "video" }[type.split("/")[0]];
  if (tag) return mediaPage(link, tag);
  const note = createElement("p", "side-panel-note", contentBox().dataset.file);
  return { title: nameOf(link), content: [note], download: link.href };
}

function mediaPage(link, tag) {
  const media = createElement(tag, "side-panel-media");
  media.src = link.href;
  if (tag === "img") media.alt = nameOf(link);
  else media.controls = true;
  return { title: nameOf(link), content: [media], download: link.href };
}

// The views of documents and passages have a part for the panel.
async function readDocument(html) {
  const page = new DOMParser().parseFromString(html, "text/html").querySelector("[data-panel-page]");
  if (!page) throw new Error("a page without a part for the panel"); // such as the sign-in page
  await Promise.all([...page.querySelectorAll("link[rel=stylesheet]")].map(loadStyles));
  return { ...page.dataset, tools: page.querySelector(".side-panel-tools"), content: [page], isDocument: true };
}

function loadStyles(link) {
  if (document.head.querySelector(`link[href="${link.getAttribute("href")}"]`)) return link.remove();
  return new Promise((resolve) => {
    link.addEventListener("load", resolve);
    link.addEventListener("error", resolve);
    document.head.append(link);
  });
}

function showPage({ title, facts = "", tab = "", download = "", tools, content }) {
  leaveContent();
  panel.querySelector("h2").textContent = title;
  panel.querySelector(".side-panel-facts").textContent = facts;
  showAction("[data-tab]", tab);
  showAction("[data-download]", download);
  panel.querySelector("[data-wide]").hidden = Boolean(tab);
  const bar = panel.querySelector(".side-panel-bar");
  if (tools) bar.prepend(tools);
  bar.hidden = !tools && panel.querySelector(".side-panel-pager").hidden;
  const box = contentBox();
  box.removeAttribute("aria-busy");
  box.replaceChildren(...content);
  box.scrollTop = 0;
  // Formulas, tables and code get what they have in an answer.
  box.dispatchEvent(new CustomEvent("htmx:load", { bubbles: true }));
}

function leaveContent() {
  closeContent?.();
  closeContent = undefined;
  panel.querySelector(".side-panel-tools")?.remove();
  contentBox().replaceChildren(); // a hidden page would go on running
}

function showAction(selector, href) {
  const link = panel.querySelector(selector);
  link.hidden = !href;
  if (href) link.href = href;
}

function scrollToPlace() {
  const box = contentBox();
  const place = box.querySelector("#place");
  if (!place?.getClientRects().length) return;
  box.scrollTop += place.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 4;
}
