// Keeps relative times current; the server rendered them in the same words.

const UPDATE_MS = 20000;
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const lang = document.documentElement.lang || "en";
const inUnits = new Intl.RelativeTimeFormat(lang);
const inWords = new Intl.RelativeTimeFormat(lang, { numeric: "auto" });

export function startDates() {
  setInterval(updateTimes, UPDATE_MS);
  document.addEventListener("visibilitychange", updateTimes);
  addEventListener("pageshow", updateTimes);
}

export function relativeTime(moment, now = Date.now()) {
  const seconds = Math.trunc((moment - now) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? [];
  const text = unit ? inUnits.format(Math.trunc(seconds / size), unit) : inWords.format(0, "second");
  return text.replace(/ (?=\p{Script=Han})/u, ""); // Japanese has no space after a number
}

// A time that is older than a week when the page is loaded has no relative text.
function updateTimes() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll('time[data-moment="relative"]')) {
    time.dataset.relative ??= String(Math.abs(Date.now() - Date.parse(time.dateTime)) < 7 * 86400000);
    if (time.dataset.relative !== "true") continue;
    const text = relativeTime(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}
