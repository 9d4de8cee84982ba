// Displays a lost connection, and reconnects soon.

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 10000;
const STEADY = 10000; // after this long, the next loss counts as a new one
const TRY_AGAIN_LATER = 4503; // from the product, which can't send 1013
const COMES_BACK = [1006, 1011, 1012, 1013, TRY_AGAIN_LATER]; // htmx reconnects after the others
const SHOWN_OUT = 4403;
const ENDS = { [SHOWN_OUT]: "out", 4429: "crowded" };
const page = Math.random().toString(36).slice(2);
let leaving = false;
let lost = 0; // time of the loss
let opened = false; // and brought up to date: a refused socket never is
let losses = 0; // since it was last steady
let steady;
let socket;

export function watch() {
  htmx.createWebSocket = connect;
  htmx.config.wsReconnectDelay = wait;
  document.addEventListener("htmx:wsAfterMessage", () => (opened = true), { once: true });
  document.addEventListener("htmx:wsOpen", back);
  document.addEventListener("htmx:wsOpen", settle);
  addEventListener("offline", away);
  addEventListener("online", () => isOpen() && back());
  document.addEventListener("htmx:wsClose", ({ detail }) => {
    lost ||= Date.now();
    losses += 1;
    clearTimeout(steady);
    const { code } = detail.event;
    if (code === SHOWN_OUT) takeNoMore();
    if (code === TRY_AGAIN_LATER) setTimeout(() => detail.elt.isConnected && detail.socketWrapper.reconnect(), wait(losses));
    show(COMES_BACK.includes(code) ? "lost" : (ENDS[code] ?? "ended"));
  });
  addEventListener("pagehide", () => (leaving = true));
  addEventListener("pageshow", () => (leaving = false));
}

// Sent at every connection, so that a returning page gets exactly what it missed, and its
// disconnection is recorded.
function connect(address) {
  const url = new URL(address);
  const last = document.querySelector("#messages > .message:last-of-type");
  if (last) url.searchParams.set("after", last.id.replace("message-", ""));
  url.searchParams.set("shown", digest());
  url.searchParams.set("page", page);
  url.searchParams.set("language", document.documentElement.lang);
  if (opened) url.searchParams.delete("leaf"); // the linked branch was displayed once
  if (lost) url.searchParams.set("away", Math.max(0, Date.now() - lost));
  return (socket = new WebSocket(url));
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
function away() {
  if (!isOpen()) return;
  lost ||= Date.now();
  show("lost");
}

function back() {
  lost = 0;
  show("");
}

function isOpen() {
  return socket?.readyState === WebSocket.OPEN;
}

// Typed text can be copied, but not sent.
function takeNoMore() {
  const form = document.getElementById("ask");
  if (!form) return;
  form.elements.text.readOnly = true;
  for (const control of form.querySelectorAll("button, select")) control.disabled = true;
  addEventListener("submit", (event) => event.target === form && refuse(event), true);
}

function refuse(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

// When a server stops, all its pages lose their sockets at once: each reconnects at a random
// time, later after each failure. A socket that only just opened doesn't prove that the server
// works.
function wait(tries) {
  const vain = Math.min(Math.max(tries, losses), 6);
  return 250 + Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** vain);
}

function settle() {
  clearTimeout(steady);
  steady = setTimeout(() => (losses = 0), STEADY);
}

function show(state) {
  const banner = document.getElementById("connection");
  if (!banner || leaving) return;
  for (const words of banner.children) words.hidden = words.dataset.when !== state;
  banner.hidden = !state;
}
