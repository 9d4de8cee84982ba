// Finds a passage in the pieces of text that a PDF page consists of. Its Markdown, spaces and
// line breaks differ from the page's, so both are compared without them.

const SHORTEST = 6; // characters of a sentence worth marking on its own

const bare = (text) => text.normalize("NFKC").replace(/[\s\u00ad#*_`|>~\\-]+/g, "").toLowerCase();

// Returns the indexes of the pieces that have some of the passage.
export function marksOf(pieces, passage) {
  const owners = [];
  let page = "";
  pieces.forEach((piece, at) => {
    const text = bare(piece);
    page += text;
    for (let i = 0; i < text.length; i += 1) owners.push(at);
  });
  const found = new Set();
  const wanted = bare(passage);
  const whole = wanted ? page.indexOf(wanted) : -1;
  if (whole >= 0) add(found, owners, whole, wanted.length);
  else markSentences(found, owners, page, passage);
  return [...found].sort((one, other) => one - other);
}

// Each sentence is searched after the one before it: words repeat on a page.
function markSentences(found, owners, page, passage) {
  let after = 0;
  for (const sentence of passage.split(/\n+|(?<=[.!?。！？])\s*/)) {
    const text = bare(sentence);
    if (text.length < SHORTEST) continue;
    let at = page.indexOf(text, after);
    if (at < 0) at = page.indexOf(text);
    if (at < 0) continue;
    add(found, owners, at, text.length);
    after = at + text.length;
  }
}

function add(found, owners, from, length) {
  for (let i = from; i < from + length; i += 1) found.add(owners[i]);
}
