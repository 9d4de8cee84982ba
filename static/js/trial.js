// The pane in which a draft is tried: a run, and nothing around it.

import { watch } from "./connection.js";
import { start } from "./run.js";

const stop = document.querySelector(".stop-trial");

start();
watch();
document.addEventListener("htmx:oobAfterSwap", () => {
  if (!document.querySelector(".run[data-live]")) stop?.remove();
});
