import assert from "node:assert/strict";
import { test } from "node:test";

import { audioExtension, chooseAudioType } from "../../static/js/audio_types.js";

const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36";
const SAFARI = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15";

test("Safari records MP4, which it can play, and other browsers WebM", () => {
  assert.equal(chooseAudioType(() => true, SAFARI), "audio/mp4");
  assert.equal(chooseAudioType(() => true, CHROME), "audio/webm;codecs=opus");
});

test("what a browser doesn't support isn't chosen", () => {
  assert.equal(chooseAudioType((type) => type === "audio/aac", CHROME), "audio/aac");
  assert.equal(chooseAudioType(() => false, SAFARI), "");
});

test("a file is named by its type", () => {
  assert.equal(audioExtension("audio/mp4"), "m4a");
  assert.equal(audioExtension("audio/unknown"), "webm");
});
