// Rows of names and secret values: adds and removes them.

document.addEventListener("click", ({ target }) => {
  const list = target.closest?.("[data-pairs]");
  if (!list) return;
  const adding = target.closest("[data-add-pair]");
  if (adding) return addRow(list, adding);
  const row = target.closest("[data-remove-pair]")?.closest(".secret-pair");
  if (row) removeRow(list, row);
});

function addRow(list, button) {
  const rows = list.querySelectorAll(".secret-pair");
  const row = rows[rows.length - 1].cloneNode(true);
  empty(row, button.dataset.value);
  button.before(row);
  row.querySelector("input").focus();
}

// The last row stays, so that the form says that there are none.
function removeRow(list, row) {
  const isLast = list.querySelectorAll(".secret-pair").length === 1;
  if (isLast) empty(row, list.querySelector("[data-add-pair]").dataset.value);
  else row.remove();
  list.querySelector("[data-add-pair]").focus();
}

function empty(row, placeholder) {
  row.querySelector("input").value = "";
  const value = row.querySelector("textarea");
  value.value = "";
  value.placeholder = placeholder;
}
