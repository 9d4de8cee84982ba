// The effective prompt, the default instructions, and the icon and name in the header.

export function start(page, form, draft) {
  const drawer = page.querySelector("[data-prompt-drawer]");
  const body = drawer.querySelector("[data-prompt-body]");
  const text = form.elements.instructions;
  const preview = page.querySelector("[data-default-prompt]");
  let standard = "";

  async function load() {
    const answer = await fetch(`${page.dataset.prompt}?${draft.query}`);
    if (!answer.ok || answer.redirected) throw new Error("not loaded");
    const html = await answer.text(); // our own server's escaped HTML
    const parsed = new DOMParser().parseFromString(html, "text/html");
    standard = parsed.querySelector("[data-standard]")?.content.textContent ?? "";
    return html;
  }

  async function open() {
    body.textContent = body.dataset.busy;
    drawer.showModal();
    try {
      await draft.saveNow();
      body.innerHTML = await load();
    } catch {
      body.textContent = body.dataset.lost;
    }
  }

  async function showDefault() {
    const isEmpty = !text.value.trim();
    const customize = page.querySelector("[data-customize]");
    if (customize) customize.hidden = !isEmpty;
    if (isEmpty && !standard) await load().catch(() => {});
    preview.hidden = text.value.trim() !== "" || !standard;
    preview.querySelector("[data-default-text]").textContent = standard;
  }

  function customize() {
    text.value = standard;
    text.focus();
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  page.querySelector("[data-effective]").addEventListener("click", open);
  page.querySelector("[data-customize]")?.addEventListener("click", async () => {
    if (!standard) await load().catch(() => {});
    customize();
  });
  drawer.addEventListener("click", ({ target }) => (target === drawer || target.closest("[data-close]")) && drawer.close());
  text.addEventListener("input", showDefault);
  form.addEventListener("change", ({ target }) => {
    if (target.name !== "icon") return;
    const place = document.querySelector("[data-editor-icon]");
    const chosen = target.closest("label").querySelector(".avatar");
    place.dataset.icon = chosen.dataset.icon;
    place.replaceChildren(chosen.querySelector("svg").cloneNode(true));
  });
  form.elements.name.addEventListener("input", ({ target }) => {
    if (target.value.trim()) document.querySelector("[data-editor-name]").textContent = target.value;
  });
  showDefault();
}
