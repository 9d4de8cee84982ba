// The list of suggestions below a text field, which keeps the focus.

// Selects the next or the previous option, wrapping around, and returns its index.
export function moveSelection(input, options, index, step) {
  options[index]?.setAttribute("aria-selected", "false");
  const next = index < 0 && step < 0 ? options.length - 1 : (index + step + options.length) % options.length;
  options[next].ariaSelected = "true";
  options[next].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", options[next].id);
  return next;
}
