// Tabs whose name is in the address, so that a reload and a failed save come back to it.

import { isComposing } from "../keys.js";

export function start(page) {
  const tabs = [...page.querySelectorAll("[data-tab]")];
  const panels = [...page.querySelectorAll("[data-panel]")];
  const wrong = tabs.find((tab) => "wrong" in tab.dataset);
  let current = "";

  function show(key, { isFocused = false, isKept = true } = {}) {
    const found = tabs.find((tab) => tab.dataset.tab === key) ?? tabs[0];
    current = found.dataset.tab;
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === found);
      tab.tabIndex = tab === found ? 0 : -1;
    }
    for (const panel of panels) panel.toggleAttribute("data-inactive", panel.dataset.panel !== current);
    if (isFocused) found.focus();
    found.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (isKept) history.replaceState(null, "", `#${current}`);
  }

  // Opens the tab of an input, and its tool, and puts the cursor there.
  function reach(name) {
    const place = page.querySelector(`[data-field="${CSS.escape(name)}"]`) ?? page.querySelector(`[data-errors-of="${CSS.escape(name)}"]`);
    const panel = place?.closest("[data-panel]");
    if (!panel) return;
    show(panel.dataset.panel);
    place.dispatchEvent(new CustomEvent("reach", { bubbles: true }));
    place.scrollIntoView({ block: "center" });
    place.querySelector("input:not([type=hidden]), select, textarea")?.focus({ preventScroll: true });
  }

  page.querySelector("[role=tablist]").addEventListener("click", (event) => {
    const tab = event.target.closest("[data-tab]");
    if (!tab) return;
    event.preventDefault();
    show(tab.dataset.tab);
  });
  page.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = tabs.findIndex((tab) => tab.dataset.tab === current);
    if (step) show(tabs[(at + step + tabs.length) % tabs.length].dataset.tab, { isFocused: true });
    else if (event.key === "Home") show(tabs[0].dataset.tab, { isFocused: true });
    else if (event.key === "End") show(tabs.at(-1).dataset.tab, { isFocused: true });
    else return;
    event.preventDefault();
  });
  addEventListener("hashchange", () => show(location.hash.slice(1), { isKept: false }));
  const asked = new URLSearchParams(location.search).get("tab");
  show(wrong?.dataset.tab ?? (location.hash.slice(1) || asked || "prompt"), { isKept: false });
  if (wrong) {
    const list = page.querySelector(`[data-panel="${current}"] .errorlist li`);
    if (list) reach(list.parentElement.dataset.errorsOf);
  }
  return { show, reach };
}
