import assert from "node:assert/strict";
import { test } from "node:test";

import { passageIndexes } from "../../static/js/passage_match.js";

test("a passage is found across pieces, whatever its spaces, hyphens and Markdown", () => {
  const pieces = ["Terms", "The deli-", "very takes", "two days.", "Signed"];
  assert.deepEqual(passageIndexes(pieces, "The **delivery**\ntakes `two` days."), [1, 2, 3]);
});

test("without the whole passage its sentences are marked in their order", () => {
  const pieces = ["It is cold today.", "Something else.", "It is warm inside.", "It is cold today."];
  assert.deepEqual(passageIndexes(pieces, "It is warm inside. A sentence from elsewhere. It is cold today."), [2, 3]);
});

test("short sentences aren't marked on their own", () => {
  assert.deepEqual(passageIndexes(["Yes.", "No."], "Yes.\nSomething that isn't there."), []);
});

test("an empty passage marks nothing", () => {
  assert.deepEqual(passageIndexes(["Terms"], " \n"), []);
  assert.deepEqual(passageIndexes([], "Terms"), []);
});

test("Japanese sentences are told apart, in any width", () => {
  assert.deepEqual(passageIndexes(["納期は２日です。", "価格は別紙です。"], "価格は別紙です。納期は2日です。"), [0, 1]);
});
