// Copies text. Plain http from another machine has no clipboard API.

export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  copyAtOnce(text);
}

// Before a link opens a new tab: a page that isn't in front can't write to the clipboard.
export function copyAtOnce(text) {
  const textarea = document.createElement("textarea");
  textarea.value = text;
  document.body.append(textarea);
  textarea.select();
  document.execCommand("copy");
  textarea.remove();
}
