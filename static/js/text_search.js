// What lists with a search field share: full-width letters and capitals are found, too.

export const fold = (text) => text.normalize("NFKC").toLowerCase();

export const searchWords = (query) => fold(query).split(/\s+/).filter(Boolean);

export function hasAllWords(text, words) {
  if (!words.length) return true; // called for every row of a live run
  const folded = fold(text);
  return words.every((word) => folded.includes(word));
}
