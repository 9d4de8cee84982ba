import assert from "node:assert/strict";
import { test } from "node:test";

import { fileName } from "../../static/js/code_languages.js";

test("a comment in the first line names the file", () => {
  assert.equal(fileName("# report.py\nprint(1)\n", "python"), "report.py");
  assert.equal(fileName("// file: src/app/main.ts\n", "ts"), "main.ts");
  assert.equal(fileName("<!-- index.html -->\n<p>", "html"), "index.html");
});

test("a path or another comment names none", () => {
  assert.equal(fileName("# ../../etc/passwd\n", "bash"), "snippet.sh");
  assert.equal(fileName("# This prints report.py twice\n", "python"), "snippet.py");
});

test("otherwise the language does, unless it is no file extension", () => {
  assert.equal(fileName("FROM alpine\n", "dockerfile"), "Dockerfile");
  assert.equal(fileName("x", "rust"), "snippet.rs");
  assert.equal(fileName("x", "zig"), "snippet.zig");
  assert.equal(fileName("x", "../x"), "snippet.txt");
  assert.equal(fileName("x", ""), "snippet.txt");
});
