import assert from "node:assert/strict";
import { test } from "node:test";

import { fuzzyScore } from "../../static/js/fuzzy.js";

test("the beginning of a label counts more than a word in it, and that more than letters within a word", () => {
  const scores = ["Chat with people", "New chat", "Snapchat"].map((label) => fuzzyScore("chat", label));
  assert.deepEqual(scores, [100, 80, 60]);
});

test("left-out letters are forgiven only between the beginnings of words", () => {
  assert.equal(fuzzyScore("nc", "New chat"), 20);
  assert.equal(fuzzyScore("nc", "finance"), 60);
  assert.equal(fuzzyScore("fc", "finance"), 0);
  assert.equal(fuzzyScore("x", "New chat"), 0);
});

test("every word must be found, in the label or among further words", () => {
  assert.equal(fuzzyScore("new file", "New chat"), 0);
  assert.ok(fuzzyScore("new conversation", "New chat", "conversation") > 0);
  assert.ok(fuzzyScore("chat", "New chat") > fuzzyScore("chat", "Start", "chat"));
});

test("case, width and kana don't matter", () => {
  for (const query of ["ﾄﾚｰｽ", "とれーす", "トレース"]) assert.equal(fuzzyScore(query, "トレース"), 100);
  assert.equal(fuzzyScore("ＣＨＡＴ", "chat"), 100);
});

test("an empty query fits everything", () => {
  assert.equal(fuzzyScore("  ", "New chat"), 1);
});
