// Keys that belong to an input method, for every key handler.

// While Japanese is composed, Enter, Tab, Escape and the arrows choose words. Safari ends the
// composition first and then sends the Enter, which only its key code gives away.
export const isComposing = (event) => event.isComposing || event.key === "Process" || event.keyCode === 229;
