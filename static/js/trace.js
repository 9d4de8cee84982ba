import { watch } from "./connection.js";
import { start } from "./run.js";

start();
watch();
openTarget();
addEventListener("hashchange", openTarget);
document.addEventListener("keydown", moved);

function openTarget() {
  const step = document.getElementById(location.hash.slice(1));
  if (!step?.matches(".step")) return;
  step.querySelector("details").open = true;
  step.scrollIntoView({ block: "center" });
}

function moved(event) {
  const by = { j: 1, k: -1 }[event.key];
  if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const rows = [...document.querySelectorAll(".step summary")];
  const at = rows.indexOf(document.activeElement.closest(".step")?.querySelector("summary"));
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
