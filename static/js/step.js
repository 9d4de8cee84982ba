// A page with parts of a run, but not the run itself: only needs copy buttons.

import { startRuns } from "./run.js";

startRuns();
