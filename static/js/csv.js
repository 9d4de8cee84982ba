// Rows of texts as CSV that a spreadsheet can open without harm.

// A spreadsheet would run these as a formula, unless it is just a number; Excel also the full-width signs.
const FORMULA = /^[\s]*[=+\-@＝＋－＠\t\r]/;
const NUMBER = /^[\s]*[+-]?[\d.,\s]*\d%?$/;

export function toCsv(rows) {
  return rows.map((cells) => cells.map(csvField).join(",")).join("\r\n");
}

function csvField(text) {
  const value = text.trim();
  const safe = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
