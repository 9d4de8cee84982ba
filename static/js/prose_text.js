// An answer as plain text, without the tools that the page adds to it.

const ADDED = ".code-head, .table-tools, .diagram, .preview, .copy-code";

export function readableText(answer) {
  const copy = answer.cloneNode(true);
  for (const each of copy.querySelectorAll(ADDED)) each.remove();
  for (const each of copy.querySelectorAll(".code-block")) each.removeAttribute("data-result");
  for (const each of copy.querySelectorAll("[data-tex]")) each.textContent = each.dataset.tex;
  // Only what is laid out has line breaks.
  Object.assign(copy.style, { position: "fixed", insetInlineStart: "-200vw" });
  copy.removeAttribute("id");
  copy.inert = true;
  answer.after(copy);
  const text = copy.innerText.trim();
  copy.remove();
  return text;
}
