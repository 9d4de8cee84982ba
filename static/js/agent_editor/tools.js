// The tools of an agent: search, filter, a drawer per tool, and what its row says.

const SETTINGS = ["effect", "timeout", "max_calls", "retries", "sending", "description", "approval"];

export function startTools(page, form) {
  const rows = [...page.querySelectorAll("[data-tool]")];
  const search = page.querySelector("[data-look-for]");

  const control = (row, setting) => form.elements[`tool-${row.dataset.tool}-${setting}`];
  const isOn = (row) => control(row, "is_given").checked;

  function describeRow(row) {
    const effect = control(row, "effect").value || row.dataset.effect;
    const badge = row.querySelector("[data-effect-badge]");
    const labels = { read: badge.dataset.read, idempotent: badge.dataset.idempotent, at_most_once: badge.dataset.once };
    badge.textContent = labels[effect] ?? "—";
    if (effect === "at_most_once") badge.dataset.tone = "amber";
    else delete badge.dataset.tone;
    const ownApproval = control(row, "approval").value;
    const text = row.querySelector("[data-approval-text]");
    const isAsked = ownApproval ? ownApproval === "always" : "asks" in row.dataset;
    text.textContent = isAsked || !form.elements.auto_execute_tools.checked ? text.dataset.every : text.dataset.never;
    row.classList.toggle("off", !isOn(row));
    row.querySelector("[data-once-note]").hidden = effect !== "at_most_once";
  }

  function filterRows() {
    const query = search?.value.trim().toLowerCase() ?? "";
    const isAll = form.elements._tool_filter?.value !== "on";
    for (const row of rows) row.hidden = !row.dataset.name.includes(query) || !(isAll || isOn(row));
    for (const group of page.querySelectorAll("[data-group]")) group.hidden = ![...group.querySelectorAll("[data-tool]")].some((row) => !row.hidden);
    const none = page.querySelector("[data-none]");
    if (none) none.hidden = rows.some((row) => !row.hidden);
  }

  function updateCounts() {
    const onCount = rows.filter(isOn).length;
    page.querySelector("[data-tool-count]").textContent = onCount;
    if (!search) return;
    page.querySelector("[data-count-on]").textContent = onCount;
    page.querySelector("[data-count-all]").textContent = rows.length;
    for (const group of page.querySelectorAll("[data-group]")) {
      const groupRows = [...group.querySelectorAll("[data-tool]")];
      const element = group.querySelector("[data-group-count]");
      element.textContent = element.dataset.template.replace("{}", groupRows.filter(isOn).length).replace("{}", groupRows.length);
    }
  }

  function setOpen(row, isOpen) {
    row.classList.toggle("open", isOpen);
    row.querySelector("[data-open-tool]").setAttribute("aria-expanded", isOpen);
  }

  page.addEventListener("click", ({ target }) => {
    const row = target.closest("[data-tool]");
    if (!row) return;
    if (target.closest("[data-reset-tool]")) {
      for (const setting of SETTINGS) control(row, setting).value = "";
      describeRow(row);
      row.dispatchEvent(new Event("change", { bubbles: true }));
      return;
    }
    const isOnLine = target.closest(".tool-line") && !target.closest("input, a, button");
    if (isOnLine || target.closest("[data-open-tool]")) setOpen(row, !row.classList.contains("open"));
  });
  form.addEventListener("change", ({ target }) => {
    if (target.name === "auto_execute_tools") rows.forEach(describeRow);
    if (target.name === "_tool_filter") filterRows();
    const row = target.closest?.("[data-tool]");
    if (!row) return;
    describeRow(row);
    updateCounts();
  });
  page.addEventListener("reach", ({ target }) => {
    const row = target.closest("[data-tool]");
    if (!row) return;
    row.hidden = false;
    setOpen(row, true);
  });
  search?.addEventListener("input", filterRows);
  rows.forEach(describeRow);
  updateCounts();
}
