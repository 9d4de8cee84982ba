// A page on which something of a run is read, without the run: what can be copied, can be.

import { start } from "./run.js";

start();
