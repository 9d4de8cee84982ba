// Rows of checks in the form of an example: added, removed, and as high as their text.

document.addEventListener("click", ({ target }) => {
  const add = target.closest?.("[data-add-check]");
  if (add) addRow(add.closest("[data-checks]"));
  target.closest?.("[data-remove-check]")?.closest(".check-row").remove();
});

function addRow(checks) {
  const row = checks.querySelector("template").content.cloneNode(true);
  checks.querySelector("ul").append(row);
  checks.querySelector("ul > li:last-child select").focus();
}
