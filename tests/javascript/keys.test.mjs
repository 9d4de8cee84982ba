import assert from "node:assert/strict";
import { test } from "node:test";

import { hasModifier, isComposing, isPlainClick } from "../../static/js/keys.js";

test("keys of an input method are recognized in every browser", () => {
  assert.ok(isComposing({ isComposing: true, key: "Enter" }));
  assert.ok(isComposing({ isComposing: false, key: "Process" }));
  assert.ok(isComposing({ isComposing: false, key: "Enter", keyCode: 229 })); // Safari
  assert.ok(!isComposing({ isComposing: false, key: "Enter", keyCode: 13 }));
});

test("only a plain click follows a link on the page", () => {
  assert.ok(isPlainClick({ button: 0 }));
  for (const key of ["ctrlKey", "metaKey", "altKey"]) {
    assert.ok(hasModifier({ [key]: true }));
    assert.ok(!isPlainClick({ button: 0, [key]: true }));
  }
  assert.ok(!isPlainClick({ button: 0, shiftKey: true }));
  assert.ok(!isPlainClick({ button: 1 }));
});
