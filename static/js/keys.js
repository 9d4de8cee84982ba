// Keys that belong to an input method or to the browser, for every handler of keys and clicks.

// While Japanese is composed, Enter, Tab, Escape and the arrows choose words. Safari ends the
// composition first and then sends the Enter, which only its key code gives away.
export const isComposing = (event) => event.isComposing || event.key === "Process" || event.keyCode === 229;

// With one of these a letter is a shortcut of the browser.
export const hasModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;

// Any other click on a link opens a tab or a window, or saves the page.
export const isPlainClick = (event) => !event.button && !event.shiftKey && !hasModifier(event);
