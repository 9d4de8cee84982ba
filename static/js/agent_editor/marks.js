// What the page says about its draft: state, changed fields and tabs, errors at their fields.

export function start(page, form, first, tabs) {
  const touched = new Set(); // inputs whose errors are displayed
  let state = first;

  function update(next) {
    state = next;
    head();
    changes();
    errors(next.errors ?? {});
  }

  function head() {
    const place = document.querySelector("[data-state]");
    const kind = state.isNew ? "new" : state.count ? "changed" : "published";
    place.querySelector("[data-state-text]").textContent = place.dataset[kind];
    place.querySelector(".dot").dataset.tone = kind === "published" ? "green" : "amber";
    for (const count of document.querySelectorAll("[data-change-count]")) count.textContent = state.count;
    for (const button of document.querySelectorAll("[data-what-changes]")) button.disabled = !state.count;
    const discard = document.querySelector("[data-discard]");
    if (discard) discard.hidden = state.isNew ? !state.draft : !state.count;
    const publish = document.querySelector("[data-publish]");
    if (publish) publish.disabled = !state.isNew && !state.count;
  }

  function changes() {
    for (const place of page.querySelectorAll("[data-was-of]")) {
      const before = state.changed[place.dataset.wasOf];
      place.textContent = before === undefined ? "" : page.dataset.was.replace("{}", before);
    }
    for (const tool of page.querySelectorAll("[data-tool]"))
      tool.querySelector("[data-tool-changed]").hidden = !state.tools.includes(tool.dataset.tool);
    for (const tab of page.querySelectorAll("[data-tab]")) note(tab, "changed", state.tabs.includes(tab.dataset.tab));
  }

  function errors(found) {
    const named = Object.entries(found).filter(([name]) => touched.has(name) || name in state.changed);
    const shown = new Map(named);
    for (const list of page.querySelectorAll("[data-errors-of]")) {
      const name = list.dataset.errorsOf;
      const sentences = shown.get(name) ?? [];
      list.replaceChildren(...sentences.map((sentence) => Object.assign(document.createElement("li"), { textContent: sentence })));
      const field = list.closest("[data-field]");
      field?.classList.toggle("errors", sentences.length > 0);
      for (const input of field?.querySelectorAll("input, select, textarea") ?? [])
        if (sentences.length) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
    }
    for (const tab of page.querySelectorAll("[data-tab]")) {
      const panel = page.querySelector(`[data-panel="${tab.dataset.tab}"]`);
      note(tab, "wrong", Boolean(panel.querySelector(".errorlist li")));
    }
  }

  function note(tab, what, isSo) {
    tab.toggleAttribute(`data-${what}`, isSo);
    const words = tab.querySelector("[data-tab-note]");
    const parts = ["changed" in tab.dataset && words.dataset.changed, "wrong" in tab.dataset && words.dataset.wrongNote];
    words.textContent = parts.filter(Boolean).join(", ");
  }

  // Displays errors of a request, all of them, and opens the first.
  function blame(found) {
    for (const name of Object.keys(found)) touched.add(name);
    errors(found);
    const order = [...page.querySelectorAll(".errorlist li")].map((item) => item.parentElement.dataset.errorsOf);
    if (order.length) tabs.reach(order[0]);
  }

  form.addEventListener("change", ({ target }) => target.name && touched.add(target.name));
  changes();
  return { update, blame, touched, get state() { return state; } };
}
