// Small parts that tools for answers share.

const texts = document.querySelector('meta[name="prose"]')?.dataset ?? {};

export const label = (name) => texts[name] ?? "";

export function find(within, selector) {
  const found = [...within.querySelectorAll(selector)];
  return within.matches?.(selector) ? [within, ...found] : found;
}

// Text that is still being written is replaced several times a second.
export const isGrowing = (element) => Boolean(element.closest(".tail"));

export function button(name, icon, act, { isText = false } = {}) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = isText ? "quiet" : "icon-button";
  made.innerHTML = icon ? `<svg class="icon" aria-hidden="true"><use href="#i-${icon}"/></svg>` : "";
  if (isText) made.append(label(name));
  else {
    made.title = label(name);
    made.setAttribute("aria-label", label(name));
  }
  made.addEventListener("click", () => act(made));
  return made;
}

export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

// Shows for a moment that a button has done it.
export function confirm(made) {
  const use = made.querySelector("use");
  const before = use.getAttribute("href");
  if (before === "#i-done") return;
  use.setAttribute("href", "#i-done");
  setTimeout(() => use.setAttribute("href", before), 1600);
}

// Plain http from another machine has no clipboard API.
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
