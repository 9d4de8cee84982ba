// "@agent" at the start of a message asks another agent once. The server decides; the page only
// suggests, and says what will happen.

import { fold } from "./text_search.js";

const form = document.getElementById("ask");
const noteElement = document.getElementById("mention-note");

export function mentionableAgents() {
  return [...(form.elements.agent?.options ?? [])].map(({ value, title }) => ({ name: value, about: title }));
}

// Returns the agent that a text starts with: the longest name that fits.
export function mentionedAgent(message) {
  if (!/^[@＠]/.test(message)) return "";
  const afterSign = fold(message.slice(1));
  const isWhole = (name) => afterSign.startsWith(name) && !/^[\p{L}\p{N}_-]/u.test(afterSign.slice(name.length));
  const matches = mentionableAgents().filter(({ name }) => isWhole(fold(name)));
  return matches.sort((a, b) => b.name.length - a.name.length)[0]?.name ?? "";
}

export function showMention(kind) {
  const name = mentionedAgent(form.elements.text.value);
  noteElement.textContent = name ? noteElement.dataset.once.replace("{}", name) : noteElement.dataset[kind] ?? "";
  noteElement.hidden = !noteElement.textContent || !mentionableAgents().length;
}
