// What the page says about its draft: state, changed fields and tabs, errors at their fields.

export function startMarks(page, form, initial, tabs) {
  const touched = new Set(); // inputs whose errors are displayed
  let state = initial;

  function update(next) {
    state = next;
    showState();
    showChanges();
    showErrors(next.errors ?? {});
  }

  function showState() {
    const element = document.querySelector("[data-state]");
    const status = state.isNew ? "new" : state.count ? "changed" : "published";
    element.querySelector("[data-state-text]").textContent = element.dataset[status];
    element.querySelector(".dot").dataset.tone = status === "published" ? "green" : "amber";
    for (const count of document.querySelectorAll("[data-change-count]")) count.textContent = state.count;
    for (const button of document.querySelectorAll("[data-what-changes]")) button.disabled = !state.count;
    const discard = document.querySelector("[data-discard]");
    if (discard) discard.hidden = state.isNew ? !state.draft : !state.count;
    const publish = document.querySelector("[data-publish]");
    if (publish) publish.disabled = !state.isNew && !state.count;
  }

  function showChanges() {
    for (const element of page.querySelectorAll("[data-was-of]")) {
      const before = state.changed[element.dataset.wasOf];
      element.textContent = before === undefined ? "" : page.dataset.was.replace("{}", before);
    }
    for (const tool of page.querySelectorAll("[data-tool]"))
      tool.querySelector("[data-tool-changed]").hidden = !state.tools.includes(tool.dataset.tool);
    for (const tab of page.querySelectorAll("[data-tab]")) setTabNote(tab, "changed", state.tabs.includes(tab.dataset.tab));
  }

  function showErrors(errors) {
    const relevant = Object.entries(errors).filter(([name]) => touched.has(name) || name in state.changed);
    const sentencesByField = new Map(relevant);
    for (const list of page.querySelectorAll("[data-errors-of]")) {
      const name = list.dataset.errorsOf;
      const sentences = sentencesByField.get(name) ?? [];
      list.replaceChildren(...sentences.map((sentence) => Object.assign(document.createElement("li"), { textContent: sentence })));
      const field = list.closest("[data-field]");
      field?.classList.toggle("errors", sentences.length > 0);
      for (const input of field?.querySelectorAll("input, select, textarea") ?? [])
        if (sentences.length) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
    }
    for (const tab of page.querySelectorAll("[data-tab]")) {
      const panel = page.querySelector(`[data-panel="${tab.dataset.tab}"]`);
      setTabNote(tab, "wrong", Boolean(panel.querySelector(".errorlist li")));
    }
  }

  function setTabNote(tab, kind, isOn) {
    tab.toggleAttribute(`data-${kind}`, isOn);
    const noteElement = tab.querySelector("[data-tab-note]");
    const parts = ["changed" in tab.dataset && noteElement.dataset.changed, "wrong" in tab.dataset && noteElement.dataset.wrongNote];
    noteElement.textContent = parts.filter(Boolean).join(", ");
  }

  // Displays errors of a request, all of them, and opens the first.
  function revealErrors(errors) {
    for (const name of Object.keys(errors)) touched.add(name);
    showErrors(errors);
    const names = [...page.querySelectorAll(".errorlist li")].map((item) => item.parentElement.dataset.errorsOf);
    if (names.length) tabs.revealField(names[0]);
  }

  form.addEventListener("change", ({ target }) => target.name && touched.add(target.name));
  showChanges();
  return { update, revealErrors, get state() { return state; } };
}
