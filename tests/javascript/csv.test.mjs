import assert from "node:assert/strict";
import { test } from "node:test";

import { toCsv } from "../../static/js/csv.js";

test("cells are trimmed, and quoted where they must be", () => {
  assert.equal(toCsv([["Name ", " Price"], ['8" nail, steel', "two\nlines"]]), 'Name,Price\r\n"8"" nail, steel","two\nlines"');
});

test("a spreadsheet runs no cell as a formula", () => {
  for (const cell of ["=1+1", "+SUM(A1)", "-cmd", "@import", "＝1+1", "＋x", "－x", "＠x"]) assert.equal(toCsv([[cell]]), `'${cell}`);
});

test("numbers stay numbers", () => {
  for (const cell of ["-5", "+3.5", "-12%"]) assert.equal(toCsv([[cell]]), cell);
  assert.equal(toCsv([["-1,000.25"]]), '"-1,000.25"');
});
