// What every page has, in the chat, the traces and the console.

import { startDates } from "./dates.js";
import { startNotifications } from "./notifications.js";
import { startPalette } from "./palette.js";
import { startShortcuts } from "./shortcuts.js";

startDates();
startShortcuts();
startPalette();
startNotifications();
