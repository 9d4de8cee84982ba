// Guardrails: rules are reordered by dragging their handle, and a rule for a model is started from
// an example. The buttons beside the handle do the same from the keyboard.

const DRAGGED = "dragged";
const MARKS = ["drop-before", "drop-after"];

document.addEventListener("dragstart", start);
document.addEventListener("dragover", hover);
document.addEventListener("drop", drop);
document.addEventListener("dragend", clear);
offerExamples();

function rowOf(target) {
  return target.closest?.("#rules > tr") ?? null;
}

function dragged() {
  return document.querySelector(`#rules > tr.${DRAGGED}`);
}

function start(event) {
  const handle = event.target.closest?.("#rules .handle");
  if (!handle) return;
  const row = rowOf(handle);
  row.classList.add(DRAGGED);
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", row.dataset.rule);
  event.dataTransfer.setDragImage(row, 12, 12);
}

function hover(event) {
  const row = rowOf(event.target);
  const moved = dragged();
  if (!row || !moved) return;
  event.preventDefault();
  unmark();
  if (row !== moved) row.classList.add(isLower(event, row) ? MARKS[1] : MARKS[0]);
}

function drop(event) {
  const row = rowOf(event.target);
  const moved = dragged();
  if (!row || !moved) return;
  event.preventDefault();
  if (row !== moved) {
    if (isLower(event, row)) row.after(moved);
    else row.before(moved);
    save();
  }
  clear();
}

function isLower(event, row) {
  const box = row.getBoundingClientRect();
  return event.clientY > box.top + box.height / 2;
}

function save() {
  const field = document.getElementById("rule-order");
  field.value = [...document.querySelectorAll("#rules > tr")].map((row) => row.dataset.rule).join(",");
  field.dispatchEvent(new CustomEvent("reordered"));
}

function unmark() {
  for (const row of document.querySelectorAll("#rules > tr")) row.classList.remove(...MARKS);
}

function clear() {
  unmark();
  dragged()?.classList.remove(DRAGGED);
}

function offerExamples() {
  const examples = document.getElementById("rubric-examples");
  const rubric = document.getElementById("id_rubric");
  if (!examples || !rubric) return;
  const list = document.createElement("div");
  list.className = "rubric-examples";
  list.append(examples.content.cloneNode(true));
  rubric.before(list);
  list.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-rubric]");
    if (!button) return;
    rubric.focus();
    rubric.setRangeText(button.dataset.rubric, 0, rubric.value.length, "end");
    rubric.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
