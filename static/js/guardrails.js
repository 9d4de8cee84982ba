// Guardrails: rules are reordered by dragging their handle, and a rule for a model is started from
// an example. The buttons beside the handle do the same from the keyboard.

import { replaceRange } from "./text_fields.js";

const DRAGGED = "dragged";
const MARKS = ["drop-before", "drop-after"];

document.addEventListener("dragstart", onDragstart);
document.addEventListener("dragover", onDragover);
document.addEventListener("drop", onDrop);
document.addEventListener("dragend", onDragend);

const examples = document.getElementById("rubric-examples");
const rubric = document.getElementById("id_rubric");
if (examples && rubric) {
  const list = document.createElement("div");
  list.className = "rubric-examples";
  list.append(examples.content.cloneNode(true));
  rubric.before(list);
  list.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-rubric]");
    if (!button) return;
    rubric.focus();
    replaceRange(rubric, button.dataset.rubric, 0, rubric.value.length);
  });
}

function rowOf(target) {
  return target.closest?.("#rules > tr") ?? null;
}

function draggedRow() {
  return document.querySelector(`#rules > tr.${DRAGGED}`);
}

function onDragstart(event) {
  const handle = event.target.closest?.("#rules .handle");
  if (!handle) return;
  const row = rowOf(handle);
  row.classList.add(DRAGGED);
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", row.dataset.rule);
  event.dataTransfer.setDragImage(row, 12, 12);
}

function onDragover(event) {
  const row = rowOf(event.target);
  const dragged = draggedRow();
  if (!row || !dragged) return;
  event.preventDefault();
  clearMarks();
  if (row !== dragged) row.classList.add(isLowerHalf(event, row) ? MARKS[1] : MARKS[0]);
}

function onDrop(event) {
  const row = rowOf(event.target);
  const dragged = draggedRow();
  if (!row || !dragged) return;
  event.preventDefault();
  if (row !== dragged) {
    if (isLowerHalf(event, row)) row.after(dragged);
    else row.before(dragged);
    const field = document.getElementById("rule-order");
    field.value = [...document.querySelectorAll("#rules > tr")].map(({ dataset }) => dataset.rule).join(",");
    field.dispatchEvent(new CustomEvent("reordered"));
  }
  onDragend();
}

function isLowerHalf(event, row) {
  const box = row.getBoundingClientRect();
  return event.clientY > box.top + box.height / 2;
}

function clearMarks() {
  for (const row of document.querySelectorAll("#rules > tr")) row.classList.remove(...MARKS);
}

function onDragend() {
  clearMarks();
  draggedRow()?.classList.remove(DRAGGED);
}
