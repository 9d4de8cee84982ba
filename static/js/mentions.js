// "@agent" at the start of a message asks another agent once. The server decides; the page only
// suggests, and says what will happen.

const form = document.getElementById("ask");
const place = document.getElementById("mention-note");

export function mentionable() {
  return [...(form.elements.agent?.options ?? [])].map(({ value, title }) => ({ name: value, about: title }));
}

// Returns the agent that a text starts with: the longest name that fits.
export function mentioned(words) {
  if (!/^[@＠]/.test(words)) return "";
  const rest = plain(words.slice(1));
  const found = mentionable().filter(({ name }) => rest.startsWith(plain(name)) && !/^[\p{L}\p{N}_-]/u.test(rest.slice(plain(name).length)));
  return found.sort((one, other) => other.name.length - one.name.length)[0]?.name ?? "";
}

export function note(kind) {
  const name = mentioned(form.elements.text.value);
  place.textContent = name ? place.dataset.once.replace("{}", name) : place.dataset[kind] ?? "";
  place.hidden = !place.textContent || !mentionable().length;
}

function plain(words) {
  return words.normalize("NFKC").toLowerCase();
}
