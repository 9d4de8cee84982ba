// What every page has, in the chat, the traces and the console.

import { start as dates } from "./dates.js";
import { start as notifications } from "./notifications.js";
import { start as palette } from "./palette.js";
import { start as shortcuts } from "./shortcuts.js";

dates();
shortcuts();
palette();
notifications();
