// A page with parts of a run, but not the run itself: only needs copy buttons.

import { start } from "./run.js";

start();
