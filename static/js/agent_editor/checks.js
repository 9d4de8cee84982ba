// Lists of checkboxes with a search, the fields of the chosen mode, and who can use the agent.

export function startChecks(page, form) {
  page.addEventListener("input", ({ target }) => {
    if (!target.matches("[data-check-search]")) return;
    const query = target.value.trim().toLowerCase();
    for (const item of target.closest("fieldset").querySelectorAll(".check-list li")) item.hidden = !item.textContent.toLowerCase().includes(query);
  });

  function showModeFields() {
    for (const part of page.querySelectorAll("[data-mode]")) part.hidden = part.dataset.mode !== form.elements.mode.value;
  }

  function showAccess() {
    const note = page.querySelector("[data-access-note]");
    const isSome = [...form.querySelectorAll("[name=groups]")].some((box) => box.checked);
    note.textContent = isSome ? note.dataset.some : note.dataset.everyone;
  }

  form.addEventListener("change", ({ target }) => {
    if (target.name === "mode") showModeFields();
    if (target.name === "groups") showAccess();
  });
  showModeFields();
  showAccess();
}
