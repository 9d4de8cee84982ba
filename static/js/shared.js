// A shared run: nothing changes on it, but its answer can be explored.

import { startEvidence } from "./evidence.js";
import { startProse } from "./prose.js";

startProse();
startEvidence();
