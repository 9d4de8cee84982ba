// Tables of an answer: a box that scrolls, and their values as CSV.

import { copyText } from "./clipboard.js";
import { toCsv } from "./csv.js";
import { createButton, createElement, download, isGrowing, label, selectAll, showDone } from "./prose_parts.js";

export function addTableTools(within) {
  for (const box of selectAll(within, ".prose .table-box")) {
    if (isGrowing(box) || box.querySelector(".table-tools")) continue;
    const table = box.querySelector("table");
    const scroll = createElement("div", "table-scroll");
    table.replaceWith(scroll);
    scroll.append(table);
    makeFocusable(scroll);
    const tools = createElement("div", "table-tools",
      createButton("copyCsv", "copy", async (button) => {
        await copyText(tableCsv(table));
        showDone(button);
      }, { isText: true }),
      createButton("downloadCsv", "down", () => download("table.csv", `\ufeff${tableCsv(table)}`, "text/csv"), { isText: true }),
    );
    box.append(tools);
  }
}

// Only what scrolls needs the keyboard.
export function makeFocusable(box, name = "table") {
  const update = () => {
    if (box.scrollWidth <= box.clientWidth && box.scrollHeight <= box.clientHeight) return;
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label(name));
  };
  new ResizeObserver(update).observe(box);
}

function tableCsv(table) {
  return toCsv([...table.rows].map((row) => [...row.cells].filter(isData).map((cell) => cell.textContent)));
}

const isData = (cell) => !cell.matches(".cited-cell");
