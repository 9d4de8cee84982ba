// Formats of recordings.

const MP4 = ["audio/mp4", "audio/aac"];
const OTHERS = ["audio/webm;codecs=opus", "audio/webm", "audio/ogg;codecs=opus"];
const EXTENSIONS = { "audio/mp4": "m4a", "audio/webm": "webm", "audio/ogg": "ogg", "audio/aac": "aac" };

// Safari also claims WebM, but can't play what it records; so MP4 comes first there.
export function chooseAudioType(isSupported, userAgent) {
  const isSafari = /^((?!chrome|chromium|android|crios|fxios).)*safari/i.test(userAgent);
  return (isSafari ? [...MP4, ...OTHERS] : [...OTHERS, ...MP4]).find(isSupported) ?? "";
}

export const audioExtension = (type) => EXTENSIONS[type] ?? "webm";
