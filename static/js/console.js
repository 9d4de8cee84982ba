// What every page of the console has: the menu's memory, closable messages, and a warning before
// unsaved changes are lost.

import { readStored, writeStored } from "./storage.js";

const KEY = "ashiato-console-menu";

const sections = readSections();
for (const section of document.querySelectorAll(".menu-section")) {
  const name = section.dataset.section;
  if (name in sections && !section.querySelector("[aria-current]")) section.open = sections[name];
  // Read again: another tab may have written meanwhile.
  section.addEventListener("toggle", () => writeStored(KEY, JSON.stringify({ ...readSections(), [name]: section.open })));
}
document.addEventListener("click", onClick);
document.querySelectorAll("form[data-guard]").forEach(warnBeforeLeaving);
document.querySelectorAll(":is(.tabs, .segmented) > [aria-current]").forEach(scrollToTab);

function readSections() {
  try {
    return JSON.parse(readStored(KEY)) ?? {};
  } catch {
    return {}; // it holds something else
  }
}

// On a phone, the current tab may be beyond the edge; the page itself must not move.
function scrollToTab(tab) {
  const bar = tab.parentElement;
  bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}

function onClick({ target }) {
  target.closest?.(".messagelist [data-dismiss]")?.closest("li").remove();
}

// A form that comes back with errors has been changed as well.
function warnBeforeLeaving(form) {
  const initialValues = formValues(form);
  const isRejected = Boolean(form.querySelector(".errornote, .errorlist"));
  let isSent = false;
  form.addEventListener("submit", () => (isSent = true));
  addEventListener("pageshow", () => (isSent = false));
  addEventListener("beforeunload", (event) => {
    if (!isSent && (isRejected || formValues(form) !== initialValues)) event.preventDefault();
  });
}

function formValues(form) {
  const pairs = [...new FormData(form)].map(([name, value]) => [name, value.name ?? value]);
  return JSON.stringify(pairs);
}
