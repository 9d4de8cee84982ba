// Small parts that tools for answers share.

const texts = document.querySelector('meta[name="prose"]')?.dataset ?? {};

export const label = (name) => texts[name] ?? "";

export function selectAll(within, selector) {
  const matches = [...within.querySelectorAll(selector)];
  return within.matches?.(selector) ? [within, ...matches] : matches;
}

// Text that is still being written is replaced several times a second.
export const isGrowing = (element) => Boolean(element.closest(".tail"));

export function createButton(name, icon, onClick, { isText = false } = {}) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = isText ? "quiet" : "icon-button";
  button.innerHTML = icon ? `<svg class="icon" aria-hidden="true"><use href="#i-${icon}"/></svg>` : "";
  if (isText) button.append(label(name));
  else {
    button.title = label(name);
    button.setAttribute("aria-label", label(name));
  }
  button.addEventListener("click", () => onClick(button));
  return button;
}

export function createElement(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

// Shows for a moment that a button has done it.
export function showDone(button) {
  const use = button.querySelector("use");
  const before = use.getAttribute("href");
  if (before === "#i-done") return;
  use.setAttribute("href", "#i-done");
  setTimeout(() => use.setAttribute("href", before), 1600);
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
