// What the browser adds to an answer: formulas, diagrams, previews, and tools for code and tables.

import { addCodeTools, startCodeTools } from "./prose_code.js";
import { drawMath } from "./prose_math.js";
import { addTableTools } from "./prose_tables.js";

let isStarted = false;

export function startProse() {
  if (isStarted) return; // a run's page has two scripts with answers
  isStarted = true;
  startCodeTools();
  document.addEventListener("htmx:load", ({ target }) => enhance(target));
  enhance(document);
}

function enhance(within) {
  if (!within.querySelectorAll) return;
  drawMath(within);
  addCodeTools(within);
  addTableTools(within);
}
