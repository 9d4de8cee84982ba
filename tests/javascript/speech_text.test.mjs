import assert from "node:assert/strict";
import { test } from "node:test";

import { languageOf, splitText } from "../../static/js/speech_text.js";

test("a text is read sentence by sentence", () => {
  assert.deepEqual(splitText("One. Two!\nThree 三つ。四つ？"), ["One.", "Two!", "Three 三つ。", "四つ？"]);
  assert.deepEqual(splitText(" \n"), []);
});

test("a long sentence is read in pieces that no voice drops", () => {
  const pieces = splitText("a".repeat(400));
  assert.deepEqual(pieces.map(({ length }) => length), [180, 180, 40]);
});

test("the script of a text says its language, or else the page does", () => {
  assert.equal(languageOf("東京へ行きます", "en"), "ja-JP");
  assert.equal(languageOf("北京", "en"), "zh-CN");
  assert.equal(languageOf("Привет", "en"), "ru-RU");
  assert.equal(languageOf("Hello", "de"), "de");
  assert.equal(languageOf("Hello", "ja"), "en-US");
});
