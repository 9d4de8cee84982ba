// Lists of checkboxes with a search, the fields of the chosen mode, and who can use the agent.

export function start(page, form) {
  page.addEventListener("input", ({ target }) => {
    if (!target.matches("[data-check-search]")) return;
    const words = target.value.trim().toLowerCase();
    for (const item of target.closest("fieldset").querySelectorAll(".check-list li")) item.hidden = !item.textContent.toLowerCase().includes(words);
  });

  function mode() {
    for (const part of page.querySelectorAll("[data-mode]")) part.hidden = part.dataset.mode !== form.elements.mode.value;
  }

  function access() {
    const note = page.querySelector("[data-access-note]");
    const isSome = [...form.querySelectorAll("[name=groups]")].some((box) => box.checked);
    note.textContent = isSome ? note.dataset.some : note.dataset.everyone;
  }

  form.addEventListener("change", ({ target }) => {
    if (target.name === "mode") mode();
    if (target.name === "groups") access();
  });
  mode();
  access();
}
