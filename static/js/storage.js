// Choices that this browser remembers. Storage can be disabled or full: then they last as long as the page.

export function readStored(key, storage = "localStorage") {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}

export function writeStored(key, value, storage = "localStorage") {
  try {
    window[storage].setItem(key, value);
  } catch {
    // See above.
  }
}
