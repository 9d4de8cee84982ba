// Says when the socket is gone, and has it come back soon.

const LONGEST_WAIT = 5000;
const COMES_BACK = [1006, 1011, 1012, 1013]; // the codes after which htmx connects again
const page = Math.random().toString(36).slice(2);
let leaving = false;
let lost = 0; // since when

export function watch() {
  htmx.createWebSocket = connect;
  htmx.config.wsReconnectDelay = wait;
  document.addEventListener("htmx:wsOpen", () => {
    lost = 0;
    show("");
  });
  document.addEventListener("htmx:wsClose", ({ detail }) => {
    lost ||= Date.now();
    show(COMES_BACK.includes(detail.event.code) ? "lost" : "ended");
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
  if (lost) url.searchParams.set("away", Math.max(0, Date.now() - lost));
  return new WebSocket(url);
}

function wait(tries) {
  return 250 + Math.random() * Math.min(LONGEST_WAIT, 500 * 2 ** Math.min(tries, 6));
}

function show(state) {
  const banner = document.getElementById("connection");
  if (!banner || leaving) return;
  for (const words of banner.children) words.hidden = words.dataset.when !== state;
  banner.hidden = !state;
}
