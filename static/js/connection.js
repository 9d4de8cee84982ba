// Says when the socket is gone, and has it come back soon.

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 10000;
const STEADY = 10000; // connected for so long, the next loss is a new one
const COMES_BACK = [1006, 1011, 1012, 1013]; // the codes after which htmx connects again
const SHOWN_OUT = 4403;
const ENDS = { [SHOWN_OUT]: "out", 4429: "crowded" };
const page = Math.random().toString(36).slice(2);
let leaving = false;
let lost = 0; // since when
let losses = 0; // since it was last steady
let steady;
let socket;

export function watch() {
  htmx.createWebSocket = connect;
  htmx.config.wsReconnectDelay = wait;
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
    show(COMES_BACK.includes(code) ? "lost" : (ENDS[code] ?? "ended"));
  });
  addEventListener("pagehide", () => (leaving = true));
  addEventListener("pageshow", () => (leaving = false));
}

// Told at every connection, so that one who comes back is sent what was missed and no more,
// and so that how long it was away is kept with what went on meanwhile.
function connect(address) {
  const url = new URL(address);
  const last = document.querySelector("#messages > .message:last-of-type");
  if (last) url.searchParams.set("after", last.id.replace("message-", ""));
  url.searchParams.set("page", page);
  url.searchParams.set("language", document.documentElement.lang);
  if (lost) url.searchParams.set("away", Math.max(0, Date.now() - lost));
  return (socket = new WebSocket(url));
}

// A socket whose network is gone stays open for minutes, and says nothing of it.
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

// What was typed can be copied, but it goes nowhere.
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

// When a server goes, all its pages lose their sockets in the same moment: each comes back at
// a time of its own, and later the more often it was in vain. A socket that only just opened
// says nothing of how the server is.
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
