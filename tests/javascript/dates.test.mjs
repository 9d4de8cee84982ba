import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document = { documentElement: { lang: "en" } };
const { relativeTime } = await import("../../static/js/dates.js");

const NOW = Date.parse("2026-03-01T12:00:00Z");
const SECOND = 1000;
const DAY = 24 * 60 * 60 * SECOND;

test("a moment is given in the largest whole unit, in the past and in the future", () => {
  assert.equal(relativeTime(NOW - 59 * SECOND, NOW), "now");
  assert.equal(relativeTime(NOW - 61 * SECOND, NOW), "1 minute ago");
  assert.equal(relativeTime(NOW - DAY + SECOND, NOW), "23 hours ago");
  assert.equal(relativeTime(NOW - 6 * DAY, NOW), "6 days ago");
  assert.equal(relativeTime(NOW + 2 * DAY, NOW), "in 2 days");
});
