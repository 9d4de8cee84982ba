// What the browser adds to an answer: formulas, diagrams, previews, tools for code and tables, and
// a panel for what it links to.

import { addCodeTools, startCodeTools } from "./prose_code.js";
import { drawMath } from "./prose_math.js";
import { addTableTools } from "./prose_tables.js";
import { startSidePanel } from "./side_panel.js";

let isStarted = false;

export function startProse({ hasPanel = true } = {}) {
  if (isStarted) return; // a run's page has two scripts with answers
  isStarted = true;
  startCodeTools();
  if (hasPanel) startSidePanel();
  document.addEventListener("htmx:load", ({ target }) => enhance(target));
  enhance(document);
}

function enhance(within) {
  if (!within.querySelectorAll) return;
  drawMath(within);
  addCodeTools(within);
  addTableTools(within);
}
