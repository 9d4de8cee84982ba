// The pane for test runs of a draft.

import { startConnection } from "./connection.js";
import { startRuns } from "./run.js";

const stop = document.querySelector(".stop-draft-run");

startRuns();
startConnection();
document.addEventListener("htmx:oobAfterSwap", () => {
  if (!document.querySelector(".run[data-live]")) stop?.remove();
});
