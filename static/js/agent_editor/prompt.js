// The effective prompt, the default instructions, and the icon and name in the header.

import { closeOnClick } from "../dialogs.js";
import { announceInput } from "../text_fields.js";

export function startPrompt(page, form, draft) {
  const drawer = page.querySelector("[data-prompt-drawer]");
  const body = drawer.querySelector("[data-prompt-body]");
  const text = form.elements.instructions;
  const preview = page.querySelector("[data-default-prompt]");
  let defaultPrompt = "";

  async function loadPrompt() {
    const response = await fetch(`${page.dataset.prompt}?${draft.query}`);
    if (!response.ok || response.redirected) throw new Error("not loaded");
    const html = await response.text(); // our own server's escaped HTML
    const parsed = new DOMParser().parseFromString(html, "text/html");
    defaultPrompt = parsed.querySelector("[data-standard]")?.content.textContent ?? "";
    return html;
  }

  async function openPrompt() {
    body.textContent = body.dataset.busy;
    drawer.showModal();
    try {
      await draft.saveNow();
      body.innerHTML = await loadPrompt();
    } catch {
      body.textContent = body.dataset.lost;
    }
  }

  async function showDefault() {
    const isEmpty = !text.value.trim();
    const customize = page.querySelector("[data-customize]");
    if (customize) customize.hidden = !isEmpty;
    if (isEmpty && !defaultPrompt) await loadPrompt().catch(() => {});
    preview.hidden = text.value.trim() !== "" || !defaultPrompt;
    // Lines that were broken for an editor run on; paragraphs and lists stay.
    preview.querySelector("[data-default-text]").textContent = defaultPrompt.replace(/(?<!\n)\n(?![\n*#-])/g, " ");
  }

  page.querySelector("[data-effective]").addEventListener("click", openPrompt);
  page.querySelector("[data-customize]")?.addEventListener("click", async () => {
    if (!defaultPrompt) await loadPrompt().catch(() => {});
    text.value = defaultPrompt;
    text.focus();
    announceInput(text);
  });
  closeOnClick(drawer);
  text.addEventListener("input", showDefault);
  form.addEventListener("change", ({ target }) => {
    if (target.name !== "icon") return;
    const avatar = document.querySelector("[data-editor-icon]");
    const chosen = target.closest("label").querySelector(".avatar");
    avatar.dataset.icon = chosen.dataset.icon;
    avatar.replaceChildren(chosen.querySelector("svg").cloneNode(true));
  });
  form.elements.name.addEventListener("input", ({ target }) => {
    if (target.value.trim()) document.querySelector("[data-editor-name]").textContent = target.value;
  });
  showDefault();
}
