// Rows of criteria in the form of a review queue: added, moved and removed.

document.addEventListener("click", ({ target }) => {
  const criteria = target.closest?.("[data-criteria]");
  if (!criteria) return;
  const list = criteria.querySelector("ul");
  const row = target.closest(".criterion");
  const button = target.closest("button");
  if (target.closest("[data-add-criterion]")) {
    list.append(criteria.querySelector("template").content.cloneNode(true));
    list.lastElementChild.querySelector("input:not([type=hidden])").focus();
  } else if (target.closest("[data-remove-criterion]")) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    (next?.querySelector("[data-remove-criterion]") ?? criteria.querySelector("[data-add-criterion]")).focus();
  } else if (button?.dataset.move === "up") {
    row.previousElementSibling?.before(row);
    button.focus();
  } else if (button?.dataset.move === "down") {
    row.nextElementSibling?.after(row);
    button.focus();
  }
});
