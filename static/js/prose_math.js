// Formulas. KaTeX is loaded by the first one; until then, and without it, their source is displayed.

import { find, label } from "./prose_parts.js";

const LIMITS = { maxSize: 20, maxExpand: 200, trust: false, strict: "ignore", throwOnError: true };
const FOLDER = new URL("../vendor/katex/", import.meta.url);
const MAX_CHARS = 10_000;
const SELECTOR = ".prose .math:not([data-math])";
let loading;

export function drawMath(within) {
  const formulas = find(within, SELECTOR);
  if (!formulas.length) return;
  if (window.katex) formulas.forEach(draw);
  else load().then(() => find(document, SELECTOR).forEach(draw), () => {});
}

// Inside a chat window that swaps often, loading once must be enough; a failed load is tried again.
function load() {
  loading ??= Promise.all([add("link", { rel: "stylesheet", href: new URL("katex.min.css", FOLDER) }), add("script", { src: new URL("katex.min.js", FOLDER) })])
    .catch((error) => {
      loading = undefined;
      throw error;
    });
  return loading;
}

function add(tag, attributes) {
  return new Promise((resolve, reject) => {
    const made = Object.assign(document.createElement(tag), attributes);
    made.addEventListener("load", resolve);
    made.addEventListener("error", reject);
    document.head.append(made);
  });
}

function draw(formula) {
  const source = formula.textContent;
  formula.dataset.math = "";
  if (source.length > MAX_CHARS) return;
  const place = document.createElement("span");
  try {
    const marks = /^\$[^$]/.test(source) ? 1 : 2;
    katex.render(source.slice(marks, -marks), place, { ...LIMITS, displayMode: formula.matches(".display") });
    formula.replaceChildren(place);
    formula.dataset.tex = source;
  } catch (error) {
    formula.dataset.math = "failed";
    formula.title = label("math").replace("{}", error.message);
    return;
  }
  if (formula.matches(".display") && formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
}
