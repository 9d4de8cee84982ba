// Finds words in short labels, forgiving about case, width, kana and left-out letters.

export function score(query, label, words = "") {
  const wanted = plain(query).split(/\s+/).filter(Boolean);
  const there = plain(label);
  const more = plain(words);
  let sum = 0;
  for (const word of wanted) {
    const best = Math.max(scoreWord(word, there), scoreWord(word, more) / 2);
    if (!best) return 0;
    sum += best;
  }
  return wanted.length ? sum / wanted.length : 1;
}

function scoreWord(word, text) {
  const at = text.indexOf(word);
  if (at === 0) return 100;
  if (at > 0) return /[\s/:·_-]/.test(text[at - 1]) ? 80 : 60;
  return word.length > 1 && isSubsequence(word, text) ? 20 : 0;
}

// Only letters that begin a word or follow a match: "nc" finds "New chat", not "finance".
function isSubsequence(word, text) {
  let at = -1;
  for (const letter of word) {
    let next = text.indexOf(letter, at + 1);
    while (next > 0 && next !== at + 1 && !/[\s/:·_-]/.test(text[next - 1])) next = text.indexOf(letter, next + 1);
    if (next < 0) return false;
    at = next;
  }
  return true;
}

function plain(text) {
  const katakana = /[\u30a1-\u30f6]/g;
  const folded = text.normalize("NFKC").toLowerCase();
  return folded.replace(katakana, (letter) => String.fromCharCode(letter.charCodeAt(0) - 0x60));
}
