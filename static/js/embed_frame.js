// The frame of a chat in another site: a chat's composer and connection, for a visitor.
//
// The visitor is known by a token that this frame keeps in its own storage, or by one that the
// site's page gives it. Neither is ever in a URL.

import { startComposer } from "./composer.js";
import { newClientId, startConnection } from "./connection.js";
import { startEvidence } from "./evidence.js";
import { isComposing } from "./keys.js";
import { startProse } from "./prose.js";
import { startCopyButtons } from "./run.js";
import { startScrolling } from "./scroll.js";
import { readStored, writeStored } from "./storage.js";
import { announceInput } from "./text_fields.js";
import { focusUnlessTouch } from "./touch.js";

const SUBPROTOCOL = "ashiato.embed";
const UNSIGNED = 4401;
const MIN_RENEWAL_MS = 10000; // a site that signs wrongly isn't asked again and again
const root = document.documentElement;
const main = document.getElementById("main");
const { key, socket, host, audience } = main.dataset;
const allowedOrigins = main.dataset.origins.split(" ");
const storageKey = `ashiato-visitor-${key}`;
const canBeAnonymous = audience !== "signed";
const ownToken = readStored(storageKey) ?? newToken();
const form = document.getElementById("ask");
let token = ""; // of the site's user
let wrapper; // of the connection
let isConnected = false;
let wasRefused = false;
let renewedAt = -MIN_RENEWAL_MS;
let waitingQuestion = "";
let liveRun = "";

start();

function start() {
  startProse({ hasPanel: false });
  startEvidence();
  startCopyButtons();
  startConnection({ protocols: () => [SUBPROTOCOL, credential()] });
  document.addEventListener("submit", onSubmit, true); // before the composer's
  startComposer({ takesFocus: false });
  startScrolling();
  addEventListener("message", onMessage);
  addEventListener("hashchange", openSource);
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKeydown);
  document.addEventListener("htmx:wsOpen", onOpen);
  document.addEventListener("htmx:wsClose", onClose);
  document.addEventListener("htmx:wsAfterMessage", onFrame);
  tell({ type: "ready" });
  if (!host) connect(); // a plain frame: its page may say later who the user is
}

function newToken() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
}

function credential() {
  return token && audience !== "anonymous" ? token : ownToken;
}

function subjectOf(webToken) {
  try {
    return JSON.parse(atob(webToken.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub;
  } catch {
    return undefined; // the server says what is wrong with it
  }
}

// The connection

function connect() {
  if (!token && !canBeAnonymous) return showState("unsigned");
  showState("");
  if (wasRefused) {
    wasRefused = false;
    return wrapper.reconnect();
  }
  if (isConnected) return;
  isConnected = true;
  main.setAttribute("hx-ext", "ws");
  main.setAttribute("ws-connect", `${socket}${location.search.includes("new=1") ? "?new=1" : ""}`);
  htmx.process(main);
}

function onOpen({ detail }) {
  wrapper = detail.socketWrapper;
  sendWaiting();
}

// A refused token: the site can give another one.
function onClose({ detail }) {
  if (detail.event.code !== UNSIGNED) return;
  wrapper = detail.socketWrapper;
  wasRefused = true;
  showState(token ? "expired" : "unsigned");
  if (performance.now() - renewedAt < MIN_RENEWAL_MS) return;
  renewedAt = performance.now();
  tell({ type: "token" });
}

function showState(state) {
  for (const sentence of document.getElementById("signing").children) sentence.hidden = sentence.dataset.when !== state;
  document.getElementById("signing").hidden = !state;
  if (state) document.getElementById("connection").hidden = true;
}

// What is on the page

function onFrame() {
  document.querySelector(".welcome")?.toggleAttribute("hidden", Boolean(document.querySelector("#messages > .message")));
  const { liveRun: run } = document.getElementById("composer-state").dataset;
  if (liveRun && !run) tell({ type: "answered" });
  liveRun = run;
}

function onSubmit(event) {
  if (event.target !== form) return;
  // One at a time: Stop is beside the text.
  if (liveRun || (!token && !canBeAnonymous)) {
    event.preventDefault();
    event.stopImmediatePropagation();
  } else if (!isConnected) event.preventDefault(); // the composer sends it when it is
  if (credential() === ownToken) writeStored(storageKey, ownToken); // nothing is stored before something is asked
}

function onClick({ target }) {
  const button = target.closest?.("button[data-rate], button[data-again], button[data-close], button[data-new]");
  const link = target.closest?.("a[href]");
  if (link && !link.getAttribute("href").startsWith("#")) Object.assign(link, { target: "_blank", rel: "noopener" });
  if (!button) return;
  const run = button.closest(".run");
  if ("rate" in button.dataset) send({ type: "rate", run: run.id.replace("run-", ""), rating: button.dataset.rate });
  else if ("again" in button.dataset) {
    const message = button.closest(".message").id.replace("message-", "");
    send({ type: "regenerate", message, client_id: newClientId() });
  } else if ("new" in button.dataset) startOver();
  else tell({ type: "close" });
}

const send = (frame) => wrapper?.send(JSON.stringify(frame));

function startOver() {
  const url = new URL(location.href);
  url.searchParams.set("new", "1");
  url.hash = "";
  location.replace(url);
}

function onKeydown(event) {
  if (event.key !== "Escape" || isComposing(event) || liveRun || event.defaultPrevented) return;
  tell({ type: "close" });
}

// A citation leads to its source, which is folded.
function openSource() {
  const source = document.getElementById(location.hash.slice(1));
  if (source?.matches("details")) source.open = true;
}

// The site's page

function tell(message) {
  if (host && window.parent !== window) window.parent.postMessage(message, host);
}

function onMessage({ data, source, origin }) {
  if (source !== window.parent || !allowedOrigins.includes(origin) || typeof data?.type !== "string") return;
  if (data.type === "start" || data.type === "identify") identify(String(data.token ?? ""));
  else if (data.type === "theme" && main.dataset.theme === "auto") root.dataset.theme = data.theme === "dark" ? "dark" : "light";
  else if (data.type === "focus") focusUnlessTouch(form.elements.text);
  else if (data.type === "ask") {
    waitingQuestion = String(data.text ?? "").slice(0, 4000);
    sendWaiting();
  } else if (data.type === "preview") showPreview(data);
}

// Another user has another conversation.
function identify(newToken) {
  const isOther = isConnected && subjectOf(newToken) !== subjectOf(token);
  token = newToken;
  const isShown = !wasRefused || document.querySelector("#messages > .message");
  if (isOther && isShown) location.reload();
  else connect();
}

function sendWaiting() {
  const { text } = form.elements;
  if (!waitingQuestion || !wrapper || text.value.trim() || liveRun) return;
  text.value = waitingQuestion;
  waitingQuestion = "";
  announceInput(text);
  form.requestSubmit();
}

// What an administrator is typing in the console.
function showPreview({ title, greeting, examples }) {
  document.getElementById("embed-title").textContent = title;
  const heading = document.querySelector(".welcome h2");
  if (heading) heading.textContent = greeting;
  const list = document.querySelector(".embed-examples");
  const buttons = examples.map((text) => Object.assign(document.createElement("button"), { type: "button", className: "button", textContent: text }));
  for (const button of buttons) button.dataset.say = button.textContent;
  list?.replaceChildren(...buttons);
}
