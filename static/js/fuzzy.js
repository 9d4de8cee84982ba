// Finds words in short labels, forgiving about case, width, kana and left-out letters.

import { fold } from "./text_search.js";

export function fuzzyScore(query, label, words = "") {
  const queryWords = foldKana(query).split(/\s+/).filter(Boolean);
  const foldedLabel = foldKana(label);
  const foldedWords = foldKana(words);
  let total = 0;
  for (const word of queryWords) {
    const wordScore = Math.max(scoreWord(word, foldedLabel), scoreWord(word, foldedWords) / 2);
    if (!wordScore) return 0;
    total += wordScore;
  }
  return queryWords.length ? total / queryWords.length : 1;
}

function scoreWord(word, text) {
  const index = text.indexOf(word);
  if (index === 0) return 100;
  if (index > 0) return /[\s/:·_-]/.test(text[index - 1]) ? 80 : 60;
  return word.length > 1 && isSubsequence(word, text) ? 20 : 0;
}

// Only letters that begin a word or follow a match: "nc" finds "New chat", not "finance".
function isSubsequence(word, text) {
  let index = -1;
  for (const letter of word) {
    let next = text.indexOf(letter, index + 1);
    while (next > 0 && next !== index + 1 && !/[\s/:·_-]/.test(text[next - 1])) next = text.indexOf(letter, next + 1);
    if (next < 0) return false;
    index = next;
  }
  return true;
}

function foldKana(text) {
  const katakana = /[\u30a1-\u30f6]/g;
  return fold(text).replace(katakana, (letter) => String.fromCharCode(letter.charCodeAt(0) - 0x60));
}
