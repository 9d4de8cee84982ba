// The pane in which a draft is tried: a run, and nothing around it.

import { watch } from "./connection.js";
import { start } from "./run.js";

const stop = document.querySelector(".stop-trial");

start();
watch();
document.addEventListener("htmx:oobAfterSwap", ({ detail: { target } }) => {
  if (target.matches(".run") && !target.matches("[data-live]")) stop?.remove();
});
