import assert from "node:assert/strict";
import { test } from "node:test";

import { hasAllWords, searchWords } from "../../static/js/text_search.js";

test("a text is found by all words in any order, case and width", () => {
  const words = searchWords("  ＭＯＤＥＬ fast ");
  assert.deepEqual(words, ["model", "fast"]);
  assert.ok(hasAllWords("A Fast ｍodel", words));
  assert.ok(!hasAllWords("A slow model", words));
});

test("without words everything is found", () => {
  assert.ok(hasAllWords("anything", searchWords("   ")));
});
