// Tables of an answer: a box that scrolls, and their values as CSV.

import { button, confirm, copyText, download, element, find, isGrowing, label } from "./prose_parts.js";

// A spreadsheet would run these as a formula, unless it is just a number; Excel also the full-width signs.
const FORMULA = /^[\s]*[=+\-@＝＋－＠\t\r]/;
const NUMBER = /^[\s]*[+-]?[\d.,\s]*\d%?$/;

export function addTableTools(within) {
  for (const box of find(within, ".prose .table-box")) {
    if (isGrowing(box) || box.querySelector(".table-tools")) continue;
    const table = box.querySelector("table");
    const scroll = element("div", "table-scroll");
    table.replaceWith(scroll);
    scroll.append(table);
    makeFocusable(scroll);
    const tools = element("div", "table-tools",
      button("copyCsv", "copy", async (made) => {
        await copyText(csv(table));
        confirm(made);
      }, { isText: true }),
      button("downloadCsv", "down", () => download("table.csv", `\ufeff${csv(table)}`, "text/csv"), { isText: true }),
    );
    box.append(tools);
  }
}

// Only what scrolls needs the keyboard.
export function makeFocusable(scroll, name = "table") {
  const check = () => {
    if (scroll.scrollWidth <= scroll.clientWidth && scroll.scrollHeight <= scroll.clientHeight) return;
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", label(name));
  };
  new ResizeObserver(check).observe(scroll);
}

export function csv(table) {
  return [...table.rows].map((row) => [...row.cells].map((cell) => field(cell.textContent)).join(",")).join("\r\n");
}

function field(text) {
  const value = text.trim();
  const safe = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
