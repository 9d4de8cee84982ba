// Tells users that a run has ended or waits for them, while they look at something else.

import { readStored, writeStored } from "./storage.js";

const SETTINGS = "ashiato-notify";
const LONG_SECONDS = 15; // seconds after which a run is worth a notification
const POLL_MS = 15000;
const OTHER_TAB_MS = 400; // for a tab in which the chat is visible
const KINDS = { completed: "finished", stopped: "finished", blocked: "failed", failed: "failed", interrupted: "failed", waiting: "waiting" };
const texts = document.getElementById("run-news-words")?.dataset;
const offer = document.getElementById("notify-offer");
const panel = document.getElementById("notifications");
const tabs = "BroadcastChannel" in window ? new BroadcastChannel("ashiato-news") : undefined;
const handledNews = new Set(); // runs another tab shows, or this one has told of
const liveRuns = new Map(); // live runs, on pages without a socket

export function startNotifications() {
  if (!texts) return;
  document.addEventListener("htmx:oobAfterSwap", onOobSwap);
  document.addEventListener("visibilitychange", onVisibilityChange);
  document.addEventListener("click", onClick);
  document.addEventListener("change", onChange);
  tabs?.addEventListener("message", ({ data }) => handledNews.add(data));
  showSettings();
  if (!document.querySelector('[ws-connect^="/ws/chat/"]') && isOn()) poll();
}

function onOobSwap({ detail }) {
  if (detail.target.id !== "run-news") return;
  const { run, status, chat, title, seconds } = document.getElementById("run-news").dataset;
  handleNews({ run, status, chat, title, seconds: Number(seconds) });
}

// Decided by what is visible now, not when the run started.
function handleNews(news) {
  const kind = KINDS[news.status];
  if (!kind) return;
  const name = `${news.run} ${news.status}`;
  if (!document.hidden && isOpenChat(news.chat)) {
    tabs?.postMessage(name);
    if (kind !== "waiting" && news.seconds >= LONG_SECONDS) offerOnce();
    return;
  }
  setTimeout(() => {
    if (handledNews.has(name)) return;
    handledNews.add(name);
    if (kind !== "waiting" && news.seconds >= LONG_SECONDS) offerOnce();
    if (document.hidden) markTitle();
    if (isOn() && readSettings()[kind]) notify(kind, news);
  }, OTHER_TAB_MS);
}

function isOpenChat(chat) {
  return document.getElementById("main")?.dataset.session === String(chat);
}

function notify(kind, news) {
  try {
    const notification = new Notification(texts[kind], { body: news.title, tag: `chat-${news.chat}`, icon: texts.icon, lang: document.documentElement.lang });
    notification.onclick = () => {
      notification.close();
      window.focus();
      if (!isOpenChat(news.chat)) location.assign(texts.chat.replace("/0/", `/${news.chat}/`));
    };
  } catch {
    markTitle(); // some phones only allow them from a service worker
  }
}

function markTitle() {
  if (!document.title.startsWith("● ")) document.title = `● ${document.title}`;
}

function onVisibilityChange() {
  if (!document.hidden) document.title = document.title.replace(/^● /, "");
}

// Pages without a socket ask, but only while a run is live.
async function poll() {
  const query = new URLSearchParams([...liveRuns.keys()].map((run) => ["run", run]));
  try {
    const response = await fetch(`${texts.source}?${query}`, { signal: AbortSignal.timeout(8000) });
    if (!response.ok || response.redirected) return;
    for (const news of (await response.json()).runs) {
      const previous = liveRuns.get(news.run);
      if (previous && previous !== news.status) handleNews(news);
      if (["running", "waiting"].includes(news.status)) liveRuns.set(news.run, news.status);
      else liveRuns.delete(news.run);
    }
  } catch {
    // The next request may get through.
  }
  if (liveRuns.size) setTimeout(poll, POLL_MS);
}

function readSettings() {
  try {
    return { on: false, finished: true, failed: true, waiting: true, ...JSON.parse(readStored(SETTINGS) ?? "{}") };
  } catch {
    return { on: false }; // it holds something else
  }
}

function saveSettings(values) {
  writeStored(SETTINGS, JSON.stringify({ ...readSettings(), ...values }));
  showSettings();
}

function isOn() {
  return permissionState() === "on";
}

function permissionState() {
  if (!isSecureContext) return "insecure";
  if (!("Notification" in window)) return "missing";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && readSettings().on ? "on" : "off";
}

// Never on load: only once somebody has waited for a run, and only once.
function offerOnce() {
  if (!offer || permissionState() !== "off" || readSettings().offered) return;
  saveSettings({ offered: true });
  offer.hidden = false;
}

async function onClick({ target }) {
  const button = target.closest?.("[data-notifications]");
  if (!button) return;
  offer.hidden = true;
  if (button.dataset.notifications === "on") await Notification.requestPermission();
  saveSettings({ on: button.dataset.notifications === "on" && Notification.permission === "granted", offered: true });
}

function onChange({ target }) {
  if (target.dataset?.notify) saveSettings({ [target.dataset.notify]: target.checked });
}

function showSettings() {
  if (!panel) return;
  for (const part of panel.querySelectorAll("[data-when]")) part.hidden = part.dataset.when !== permissionState();
  for (const box of panel.querySelectorAll("[data-notify]")) box.checked = readSettings()[box.dataset.notify];
}
