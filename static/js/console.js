// What every page of the console has: the menu's memory, closable messages, and a warning before
// unsaved changes are lost.

const KEY = "ashiato-console-menu";

rememberSections();
document.addEventListener("click", dismiss);
document.querySelectorAll("form[data-guard]").forEach(guard);
document.querySelectorAll(":is(.tabs, .segmented) > [aria-current]").forEach(reveal);

function rememberSections() {
  const kept = read();
  for (const section of document.querySelectorAll(".menu-section")) {
    const name = section.dataset.section;
    if (name in kept && !section.querySelector("[aria-current]")) section.open = kept[name];
    section.addEventListener("toggle", () => write({ ...read(), [name]: section.open }));
  }
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {}; // storage is disabled, or holds something else
  }
}

function write(kept) {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // Storage is disabled or full: the menu forgets.
  }
}

// On a phone, the current tab may be beyond the edge; the page itself must not move.
function reveal(tab) {
  const bar = tab.parentElement;
  bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}

function dismiss({ target }) {
  target.closest?.(".messagelist [data-dismiss]")?.closest("li").remove();
}

// A form that comes back with errors has been changed as well.
function guard(form) {
  const before = values(form);
  const isRejected = Boolean(form.querySelector(".errornote, .errorlist"));
  let isSent = false;
  form.addEventListener("submit", () => (isSent = true));
  addEventListener("pageshow", () => (isSent = false));
  addEventListener("beforeunload", (event) => {
    if (!isSent && (isRejected || values(form) !== before)) event.preventDefault();
  });
}

function values(form) {
  const pairs = [...new FormData(form)].map(([name, value]) => [name, value.name ?? value]);
  return JSON.stringify(pairs);
}
