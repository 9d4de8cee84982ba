// Nothing unsent stays on the computer of someone who signed out.

import { forgetAll } from "./drafts.js";

forgetAll();
