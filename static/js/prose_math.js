// Formulas. KaTeX is loaded by the first one; until then, and without it, their source is displayed.

import { label, selectAll } from "./prose_parts.js";

const LIMITS = { maxSize: 20, maxExpand: 200, trust: false, strict: "ignore", throwOnError: true };
const FOLDER = new URL("../vendor/katex/", import.meta.url);
const MAX_CHARS = 10_000;
const SELECTOR = ".prose .math:not([data-math])";
let loading;

export function drawMath(within) {
  const formulas = selectAll(within, SELECTOR);
  if (!formulas.length) return;
  if (window.katex) formulas.forEach(drawFormula);
  else loadKatex().then(() => selectAll(document, SELECTOR).forEach(drawFormula), () => {});
}

// Inside a chat window that swaps often, loading once must be enough; a failed load is tried again.
function loadKatex() {
  loading ??= Promise.all([
    addToHead("link", { rel: "stylesheet", href: new URL("katex.min.css", FOLDER) }),
    addToHead("script", { src: new URL("katex.min.js", FOLDER) }),
  ]).catch((error) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

function addToHead(tag, attributes) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  });
}

function drawFormula(formula) {
  const source = formula.textContent;
  formula.dataset.math = "";
  if (source.length > MAX_CHARS) return;
  const output = document.createElement("span");
  try {
    const delimiterLength = /^\$[^$]/.test(source) ? 1 : 2;
    katex.render(source.slice(delimiterLength, -delimiterLength), output, { ...LIMITS, displayMode: formula.matches(".display") });
    formula.replaceChildren(output);
    formula.dataset.tex = source;
  } catch (error) {
    formula.dataset.math = "failed";
    formula.title = label("math").replace("{}", error.message);
    return;
  }
  if (formula.matches(".display") && formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
}
