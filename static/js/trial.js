// The pane for test runs of a draft.

import { watch } from "./connection.js";
import { start } from "./run.js";

const stop = document.querySelector(".stop-draft-run");

start();
watch();
document.addEventListener("htmx:oobAfterSwap", () => {
  if (!document.querySelector(".run[data-live]")) stop?.remove();
});
