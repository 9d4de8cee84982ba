// An answer as plain text, without its citations and the tools that the page adds to it.

const ADDED = ".code-head, .table-tools, .diagram, .copy-code, .cite";

export function readableText(answer) {
  const copy = answer.cloneNode(true);
  for (const part of copy.querySelectorAll(ADDED)) part.remove();
  for (const part of copy.querySelectorAll(".code-block")) part.removeAttribute("data-result");
  for (const part of copy.querySelectorAll("[data-tex]")) part.textContent = part.dataset.tex;
  // Only what is laid out has line breaks.
  Object.assign(copy.style, { position: "fixed", insetInlineStart: "-200vw" });
  copy.removeAttribute("id");
  copy.inert = true;
  answer.after(copy);
  const text = copy.innerText.trim();
  copy.remove();
  return text;
}
