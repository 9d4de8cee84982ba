// Tells users that a run has ended or waits for them, while they look at something else.

const SETTINGS = "ashiato-notify";
const LONG = 15; // seconds after which a run is worth a notification
const EVERY = 15000;
const WAIT = 400; // for a tab in which the chat is visible
const KINDS = { completed: "finished", stopped: "finished", blocked: "failed", failed: "failed", interrupted: "failed", waiting: "waiting" };
const words = document.getElementById("run-news-words")?.dataset;
const offer = document.getElementById("notify-offer");
const panel = document.getElementById("notifications");
const tabs = "BroadcastChannel" in window ? new BroadcastChannel("ashiato-news") : undefined;
const seen = new Set(); // runs another tab shows, or this one has told of
const known = new Map(); // live runs, on pages without a socket

export function start() {
  if (!words) return;
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => detail.target.id === "run-news" && told());
  document.addEventListener("visibilitychange", look);
  document.addEventListener("click", pressed);
  document.addEventListener("change", changed);
  tabs?.addEventListener("message", ({ data }) => seen.add(data));
  showSettings();
  if (!document.querySelector('[ws-connect^="/ws/chat/"]') && isOn()) poll();
}

function told() {
  const { run, status, chat, title, seconds } = document.getElementById("run-news").dataset;
  take({ run, status, chat, title, seconds: Number(seconds) });
}

// Decided by what is visible now, not when the run started.
function take(news) {
  const kind = KINDS[news.status];
  if (!kind) return;
  const name = `${news.run} ${news.status}`;
  if (!document.hidden && isOpen(news.chat)) {
    tabs?.postMessage(name);
    if (kind !== "waiting" && news.seconds >= LONG) offerOnce();
    return;
  }
  setTimeout(() => {
    if (seen.has(name)) return;
    seen.add(name);
    if (kind !== "waiting" && news.seconds >= LONG) offerOnce();
    if (document.hidden) markTitle();
    if (isOn() && settings()[kind]) notify(kind, news);
  }, WAIT);
}

function isOpen(chat) {
  return document.getElementById("main")?.dataset.session === String(chat);
}

function notify(kind, news) {
  try {
    const note = new Notification(words[kind], { body: news.title, tag: `chat-${news.chat}`, icon: words.icon, lang: document.documentElement.lang });
    note.onclick = () => {
      note.close();
      window.focus();
      if (!isOpen(news.chat)) location.assign(words.chat.replace("/0/", `/${news.chat}/`));
    };
  } catch {
    markTitle(); // some phones only allow them from a service worker
  }
}

function markTitle() {
  if (!document.title.startsWith("● ")) document.title = `● ${document.title}`;
}

function look() {
  if (!document.hidden) document.title = document.title.replace(/^● /, "");
}

// Pages without a socket ask, but only while a run is live.
async function poll() {
  const asked = new URLSearchParams([...known.keys()].map((run) => ["run", run]));
  try {
    const response = await fetch(`${words.source}?${asked}`, { signal: AbortSignal.timeout(8000) });
    if (!response.ok || response.redirected) return;
    for (const news of (await response.json()).runs) {
      const before = known.get(news.run);
      if (before && before !== news.status) take(news);
      if (["running", "waiting"].includes(news.status)) known.set(news.run, news.status);
      else known.delete(news.run);
    }
  } catch {
    // The next request may get through.
  }
  if (known.size) setTimeout(poll, EVERY);
}

function settings() {
  try {
    return { on: false, finished: true, failed: true, waiting: true, ...JSON.parse(localStorage.getItem(SETTINGS) ?? "{}") };
  } catch {
    return { on: false };
  }
}

function save(values) {
  try {
    localStorage.setItem(SETTINGS, JSON.stringify({ ...settings(), ...values }));
  } catch {
    // Storage is disabled: notifications stay off.
  }
  showSettings();
}

function isOn() {
  return state() === "on";
}

function state() {
  if (!isSecureContext) return "insecure";
  if (!("Notification" in window)) return "missing";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && settings().on ? "on" : "off";
}

// Never on load: only once somebody has waited for a run, and only once.
function offerOnce() {
  if (!offer || state() !== "off" || settings().offered) return;
  save({ offered: true });
  offer.hidden = false;
}

async function pressed({ target }) {
  const button = target.closest?.("[data-notifications]");
  if (!button) return;
  offer.hidden = true;
  if (button.dataset.notifications === "on") await Notification.requestPermission();
  save({ on: button.dataset.notifications === "on" && Notification.permission === "granted", offered: true });
}

function changed({ target }) {
  if (target.dataset?.notify) save({ [target.dataset.notify]: target.checked });
}

function showSettings() {
  if (!panel) return;
  for (const part of panel.querySelectorAll("[data-when]")) part.hidden = part.dataset.when !== state();
  for (const box of panel.querySelectorAll("[data-notify]")) box.checked = settings()[box.dataset.notify];
}
