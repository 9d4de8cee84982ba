// Displays a lost connection, and reconnects soon.

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10000;
const STEADY_MS = 10000; // after this long, the next loss counts as a new one
const TRY_AGAIN_LATER = 4503; // from the product, which can't send 1013
const RECONNECTING = [1006, 1011, 1012, 1013, TRY_AGAIN_LATER]; // htmx reconnects after the others
const REVOKED = 4403;
const ENDS = { [REVOKED]: "out", 4429: "crowded" };
const pageId = Math.random().toString(36).slice(2);
let isLeaving = false;
let lostAt = 0; // time of the loss
let wasOpened = false; // and brought up to date: a refused socket never is
let lossCount = 0; // since it was last steady
let steadyTimer;
let socket;
let protocols; // returns what is sent with each connection besides the URL

export function startConnection(options = {}) {
  protocols = options.protocols ?? (() => []);
  htmx.createWebSocket = connect;
  htmx.config.wsReconnectDelay = reconnectDelay;
  document.addEventListener("htmx:wsAfterMessage", () => (wasOpened = true), { once: true });
  document.addEventListener("htmx:wsOpen", onReconnected);
  document.addEventListener("htmx:wsOpen", onSocketOpen);
  addEventListener("offline", onOffline);
  addEventListener("online", () => isOpen() && onReconnected());
  document.addEventListener("htmx:wsClose", ({ detail }) => {
    lostAt ||= Date.now();
    lossCount += 1;
    clearTimeout(steadyTimer);
    const { code } = detail.event;
    if (code === REVOKED) disableComposer();
    if (code === TRY_AGAIN_LATER) setTimeout(() => detail.elt.isConnected && detail.socketWrapper.reconnect(), reconnectDelay(lossCount));
    showBanner(RECONNECTING.includes(code) ? "lost" : (ENDS[code] ?? "ended"));
  });
  addEventListener("pagehide", () => (isLeaving = true));
  addEventListener("pageshow", () => (isLeaving = false));
}

// Sent at every connection, so that a returning page gets exactly what it missed, and its
// disconnection is recorded.
function connect(wsUrl) {
  const url = new URL(wsUrl);
  const lastMessage = document.querySelector("#messages > .message:last-of-type");
  if (lastMessage) url.searchParams.set("after", lastMessage.id.replace("message-", ""));
  url.searchParams.set("shown", digest());
  url.searchParams.set("page", pageId);
  url.searchParams.set("language", document.documentElement.lang);
  if (wasOpened) url.searchParams.delete("leaf"); // the linked branch was displayed once
  if (lostAt) url.searchParams.set("away", Math.max(0, Date.now() - lostAt));
  return (socket = new WebSocket(url, protocols()));
}

// What chat/fragments/page_digest.py computes from the rows: a page that shows other messages, versions
// or corrections than these is rendered again.
function digest() {
  const messages = [...document.querySelectorAll("#messages > .message")];
  if (!messages.length) return "";
  const lines = messages.map((message) => {
    const fork = message.querySelector(".fork")?.dataset.fork ?? "";
    const edited = message.querySelector(".question")?.dataset.edited ?? "";
    return `${message.id.replace("message-", "")}|${fork}|${edited}`;
  });
  let hash = 2166136261;
  for (const byte of new TextEncoder().encode(lines.join(","))) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return `${lines[0].split("|")[0]}.${hash.toString(16)}`;
}

// A socket without a network stays open for minutes without notice.
function onOffline() {
  if (!isOpen()) return;
  lostAt ||= Date.now();
  showBanner("lost");
}

function onReconnected() {
  lostAt = 0;
  showBanner("");
}

function isOpen() {
  return socket?.readyState === WebSocket.OPEN;
}

// Typed text can be copied, but not sent.
function disableComposer() {
  const form = document.getElementById("ask");
  if (!form) return;
  form.elements.text.readOnly = true;
  for (const control of form.querySelectorAll("button, select")) control.disabled = true;
  const refuse = (event) => {
    if (event.target !== form) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  addEventListener("submit", refuse, true);
}

// The server knows by it that a frame was sent before. crypto.randomUUID isn't available over plain
// http from another machine.
export function newClientId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// When a server stops, all its pages lose their sockets at once: each reconnects at a random
// time, later after each failure. A socket that only just opened doesn't prove that the server
// works.
function reconnectDelay(tries) {
  const failures = Math.min(Math.max(tries, lossCount), 6);
  return 250 + Math.random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
}

function onSocketOpen() {
  clearTimeout(steadyTimer);
  steadyTimer = setTimeout(() => (lossCount = 0), STEADY_MS);
}

function showBanner(state) {
  const banner = document.getElementById("connection");
  if (!banner || isLeaving) return;
  for (const message of banner.children) message.hidden = message.dataset.when !== state;
  banner.hidden = !state;
}
