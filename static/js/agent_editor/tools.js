// The tools of an agent: search, filter, a drawer per tool, and what its row says.

export function start(page, form) {
  const rows = [...page.querySelectorAll("[data-tool]")];
  const search = page.querySelector("[data-look-for]");

  const control = (row, setting) => form.elements[`tool-${row.dataset.tool}-${setting}`];
  const isOn = (row) => control(row, "is_given").checked;

  function describe(row) {
    const effect = control(row, "effect").value || row.dataset.effect;
    const badge = row.querySelector("[data-effect-badge]");
    const words = { read: badge.dataset.read, idempotent: badge.dataset.idempotent, at_most_once: badge.dataset.once };
    badge.textContent = words[effect] ?? "—";
    if (effect === "at_most_once") badge.dataset.tone = "amber";
    else delete badge.dataset.tone;
    const own = control(row, "approval").value;
    const text = row.querySelector("[data-approval-text]");
    const isAsked = own ? own === "always" : "asks" in row.dataset;
    text.textContent = isAsked || !form.elements.auto_execute_tools.checked ? text.dataset.every : text.dataset.never;
    row.classList.toggle("off", !isOn(row));
    row.querySelector("[data-once-note]").hidden = effect !== "at_most_once";
  }

  function filter() {
    const words = search?.value.trim().toLowerCase() ?? "";
    const isAll = form.elements._tool_filter?.value !== "on";
    for (const row of rows) row.hidden = !row.dataset.name.includes(words) || !(isAll || isOn(row));
    for (const group of page.querySelectorAll("[data-group]")) group.hidden = ![...group.querySelectorAll("[data-tool]")].some((row) => !row.hidden);
    const none = page.querySelector("[data-none]");
    if (none) none.hidden = rows.some((row) => !row.hidden);
  }

  function count() {
    const on = rows.filter(isOn).length;
    page.querySelector("[data-tool-count]").textContent = on;
    if (!search) return;
    page.querySelector("[data-count-on]").textContent = on;
    page.querySelector("[data-count-all]").textContent = rows.length;
    for (const group of page.querySelectorAll("[data-group]")) {
      const own = [...group.querySelectorAll("[data-tool]")];
      const place = group.querySelector("[data-group-count]");
      place.textContent = place.dataset.template.replace("{}", own.filter(isOn).length).replace("{}", own.length);
    }
  }

  function open(row, isOpen) {
    row.classList.toggle("open", isOpen);
    row.querySelector("[data-open-tool]").setAttribute("aria-expanded", isOpen);
  }

  function reset(row) {
    for (const setting of ["effect", "timeout", "max_calls", "retries", "sending", "description"]) control(row, setting).value = "";
    control(row, "approval").value = "";
    describe(row);
    row.dispatchEvent(new Event("change", { bubbles: true }));
  }

  page.addEventListener("click", ({ target }) => {
    const row = target.closest("[data-tool]");
    if (!row) return;
    if (target.closest("[data-reset-tool]")) reset(row);
    else if (target.closest("[data-open-tool]") || (target.closest(".tool-line") && !target.closest("input, a, button"))) open(row, !row.classList.contains("open"));
  });
  form.addEventListener("change", ({ target }) => {
    if (target.name === "auto_execute_tools") rows.forEach(describe);
    if (target.name === "_tool_filter") filter();
    const row = target.closest?.("[data-tool]");
    if (!row) return;
    describe(row);
    count();
  });
  page.addEventListener("reach", ({ target }) => {
    const row = target.closest("[data-tool]");
    if (!row) return;
    row.hidden = false;
    open(row, true);
  });
  search?.addEventListener("input", filter);
  rows.forEach(describe);
  count();
}
