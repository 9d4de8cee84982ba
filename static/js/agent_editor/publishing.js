// What would change, publishing with a note, discarding with undo.

import { closeOnClick } from "../dialogs.js";

const UNDO_KEY = "ashiato-agent-undo";
const TOAST_MS = 10_000;

export function startPublishing(page, form, draft, tabs) {
  const dialog = document.querySelector("[data-publish-dialog]");
  const body = dialog.querySelector("[data-changes-body]");
  const discardDialog = document.querySelector("[data-discard-dialog]");
  const toast = document.querySelector("[data-toast]");
  let isPublishing = false;

  async function openDialog({ isPublish = true } = {}) {
    if (dialog.open) return;
    body.textContent = body.dataset.busy;
    dialog.showModal();
    const note = dialog.querySelector("#id_note");
    if (isPublish && note) note.focus();
    if (!(await draft.saveNow())) return dialog.close();
    try {
      const response = await fetch(`${page.dataset.changes}?${draft.query}`);
      if (!response.ok || response.redirected) throw new Error("not loaded");
      body.innerHTML = await response.text(); // our own server's escaped HTML
    } catch {
      body.textContent = body.dataset.lost;
    }
    const publishButton = dialog.querySelector("[data-publish-now]");
    if (publishButton) publishButton.disabled = Boolean(body.querySelector(".cannot-publish"));
  }

  async function discard() {
    const isNew = !page.dataset.agent;
    await draft.saveNow();
    const response = await draft.post(page.dataset.discardUrl);
    if (!response.ok) return;
    draft.markSent();
    if (isNew) return location.assign(page.dataset.list);
    sessionStorage.setItem(UNDO_KEY, page.dataset.agent);
    location.reload();
  }

  async function undo() {
    toast.hidden = true;
    await draft.post(page.dataset.undo);
    draft.markSent();
    location.reload();
  }

  form.addEventListener("submit", async (event) => {
    if (isPublishing || event.submitter?.matches("[data-restore]")) return draft.markSent();
    event.preventDefault();
    if (!dialog.open) return openDialog();
    if (dialog.querySelector("[data-publish-now]")?.disabled) return;
    if (!(await draft.saveNow())) return dialog.close();
    isPublishing = true;
    draft.markSent();
    setTimeout(() => form.requestSubmit()); // a form can't be submitted within its own event
  });
  body.addEventListener("click", (event) => {
    const link = event.target.closest("[data-open-field]");
    if (!link) return;
    event.preventDefault();
    dialog.close();
    tabs.revealField(link.dataset.openField);
  });
  closeOnClick(dialog);
  closeOnClick(discardDialog);
  for (const button of document.querySelectorAll("[data-what-changes]")) button.addEventListener("click", () => openDialog({ isPublish: false }));
  document.querySelector("[data-discard]")?.addEventListener("click", () => (page.dataset.agent ? discard() : discardDialog.showModal()));
  document.querySelector("[data-discard-now]").addEventListener("click", discard);
  toast.querySelector("[data-undo-button]").addEventListener("click", undo);
  const discardedAgent = sessionStorage.getItem(UNDO_KEY);
  sessionStorage.removeItem(UNDO_KEY);
  if (discardedAgent && discardedAgent === page.dataset.agent) {
    toast.querySelector("p").textContent = toast.dataset.discarded;
    toast.hidden = false;
    setTimeout(() => (toast.hidden = true), TOAST_MS);
  }
  return { openDialog };
}
