// Rows of checks in the form of an example: added, removed, and as high as their text.

document.addEventListener("click", ({ target }) => {
  target.closest?.("[data-remove-check]")?.closest(".check-row").remove();
  const checks = target.closest?.("[data-add-check]")?.closest("[data-checks]");
  if (!checks) return;
  checks.querySelector("ul").append(checks.querySelector("template").content.cloneNode(true));
  checks.querySelector("ul > li:last-child select").focus();
});
