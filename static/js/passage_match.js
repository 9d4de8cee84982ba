// Finds a passage in the pieces of text that a PDF page consists of. Its Markdown, spaces and
// line breaks differ from the page's, so both are compared without them.

const MIN_CHARS = 6; // characters of a sentence worth marking on its own

const strip = (text) => text.normalize("NFKC").replace(/[\s\u00ad#*_`|>~\\-]+/g, "").toLowerCase();

// Returns the indexes of the pieces that have some of the passage.
export function passageIndexes(pieces, passage) {
  const owners = []; // the piece of every character of the page
  let pageText = "";
  pieces.forEach((piece, index) => {
    const text = strip(piece);
    pageText += text;
    for (let offset = 0; offset < text.length; offset += 1) owners.push(index);
  });
  const indexes = new Set();
  const strippedPassage = strip(passage);
  const start = strippedPassage ? pageText.indexOf(strippedPassage) : -1;
  if (start >= 0) addOwners(indexes, owners, start, strippedPassage.length);
  else markSentences(indexes, owners, pageText, passage);
  return [...indexes].sort((a, b) => a - b);
}

// Each sentence is searched after the one before it: words repeat on a page.
function markSentences(indexes, owners, pageText, passage) {
  let searchFrom = 0;
  for (const sentence of passage.split(/\n+|(?<=[.!?。！？])\s*/)) {
    const text = strip(sentence);
    if (text.length < MIN_CHARS) continue;
    let start = pageText.indexOf(text, searchFrom);
    if (start < 0) start = pageText.indexOf(text);
    if (start < 0) continue;
    addOwners(indexes, owners, start, text.length);
    searchFrom = start + text.length;
  }
}

function addOwners(indexes, owners, start, length) {
  for (const owner of owners.slice(start, start + length)) indexes.add(owner);
}
