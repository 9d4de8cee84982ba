// What scripts do with text fields. Other scripts hear of a change as if it had been typed.

const growsByItself = CSS.supports("field-sizing", "content");

export function growToFit(field) {
  if (growsByItself) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

export function announceInput(field) {
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

// Puts text in place of a range; the caret is behind it.
export function replaceRange(field, text, start, end) {
  field.setRangeText(text, start, end, "end");
  announceInput(field);
}
