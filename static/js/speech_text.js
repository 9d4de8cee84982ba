// Texts for the voices of browsers: short pieces, each in one language.

const MAX_CHARS = 180; // some voices stop in the middle of longer texts
const SENTENCE = /[^.!?。！？\n]+[.!?。！？]*\s*/g;
const SCRIPTS = [
  [/[\u3040-\u30ff]/, "ja-JP"],
  [/[\uac00-\ud7af]/, "ko-KR"],
  [/[\u4e00-\u9fff]/, "zh-CN"],
  [/[\u0400-\u04ff]/, "ru-RU"],
];

export function splitText(text) {
  const pieces = [];
  for (const sentence of text.match(SENTENCE) ?? []) {
    const trimmed = sentence.trim();
    for (let start = 0; start < trimmed.length; start += MAX_CHARS) pieces.push(trimmed.slice(start, start + MAX_CHARS));
  }
  return pieces.filter(Boolean);
}

// A Japanese text has kana in nearly every sentence; other scripts name their language.
export function languageOf(text, pageLanguage) {
  const match = SCRIPTS.find(([script]) => script.test(text));
  return match?.[1] ?? (pageLanguage.startsWith("ja") ? "en-US" : pageLanguage);
}
