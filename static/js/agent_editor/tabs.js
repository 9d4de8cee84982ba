// Tabs whose name is in the address, so that a reload and a failed save come back to it.

import { isComposing } from "../keys.js";

export function startTabs(page) {
  const tabs = [...page.querySelectorAll("[data-tab]")];
  const panels = [...page.querySelectorAll("[data-panel]")];
  const wrongTab = tabs.find((tab) => "wrong" in tab.dataset);
  let current = "";

  function showTab(key, { isFocused = false, isKept = true } = {}) {
    const shownTab = tabs.find((tab) => tab.dataset.tab === key) ?? tabs[0];
    current = shownTab.dataset.tab;
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === shownTab);
      tab.tabIndex = tab === shownTab ? 0 : -1;
    }
    for (const panel of panels) panel.toggleAttribute("data-inactive", panel.dataset.panel !== current);
    if (isFocused) shownTab.focus();
    shownTab.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (isKept) history.replaceState(null, "", `#${current}`);
  }

  // Opens the tab of an input, and its tool, and puts the cursor there.
  function revealField(name) {
    const field = page.querySelector(`[data-field="${CSS.escape(name)}"]`) ?? page.querySelector(`[data-errors-of="${CSS.escape(name)}"]`);
    const panel = field?.closest("[data-panel]");
    if (!panel) return;
    showTab(panel.dataset.panel);
    field.dispatchEvent(new CustomEvent("reach", { bubbles: true }));
    field.scrollIntoView({ block: "center" });
    field.querySelector("input:not([type=hidden]), select, textarea")?.focus({ preventScroll: true });
  }

  page.querySelector("[role=tablist]").addEventListener("click", (event) => {
    const tab = event.target.closest("[data-tab]");
    if (!tab) return;
    event.preventDefault();
    showTab(tab.dataset.tab);
  });
  page.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const index = tabs.findIndex((tab) => tab.dataset.tab === current);
    if (step) showTab(tabs[(index + step + tabs.length) % tabs.length].dataset.tab, { isFocused: true });
    else if (event.key === "Home") showTab(tabs[0].dataset.tab, { isFocused: true });
    else if (event.key === "End") showTab(tabs.at(-1).dataset.tab, { isFocused: true });
    else return;
    event.preventDefault();
  });
  addEventListener("hashchange", () => showTab(location.hash.slice(1), { isKept: false }));
  const requested = new URLSearchParams(location.search).get("tab");
  showTab(wrongTab?.dataset.tab ?? (location.hash.slice(1) || requested || "prompt"), { isKept: false });
  if (wrongTab) {
    const list = page.querySelector(`[data-panel="${current}"] .errorlist li`);
    if (list) revealField(list.parentElement.dataset.errorsOf);
  }
  return { revealField };
}
