// What every page has, in the chat, the traces and the console.

import { start as dates } from "./dates.js";

dates();
