// What every page has, in the chat, the traces and the console.

import { startDates } from "./dates.js";
import { startNotifications } from "./notifications.js";
import { startPalette } from "./palette.js";
import { startSessions } from "./sessions.js";
import { startShortcuts } from "./shortcuts.js";
import { startSidebar } from "./sidebar.js";

startDates();
startShortcuts();
startPalette();
startNotifications();
startSidebar();
if (document.getElementById("session-search")) startSessions();
