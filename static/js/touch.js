// Whether people type on the screen. The width says nothing about it: a phone can have a
// keyboard, and a narrow window is no phone.

const coarse = matchMedia("(pointer: coarse)");
const COVERED = 120; // px; more than a toolbar that appears or hides

// An on-screen keyboard has no Shift Enter to speak of, so Enter makes a new line on it.
export function hasTouchKeyboard() {
  if (coarse.matches) return true;
  // A screen that can be touched besides a mouse: its keyboard covers part of the page.
  const { height, scale } = visualViewport ?? { height: innerHeight, scale: 1 };
  return innerHeight - height * scale > COVERED;
}

// Focusing a field opens the keyboard, which covers half of what is being read.
export function focusUnlessTouch(field) {
  if (!hasTouchKeyboard()) field.focus({ preventScroll: true });
}
