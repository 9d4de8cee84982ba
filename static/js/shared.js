// A shared run: nothing changes on it, but its answer can be explored.

import { showEvidence } from "./evidence.js";
import { enhanceProse } from "./prose.js";

enhanceProse();
showEvidence();
