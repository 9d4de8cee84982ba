// A decided call leaves the list; the link to the list asks anew how many there are.
document.body.addEventListener("htmx:afterRequest", (event) => {
  const card = event.target.closest(".approvals .waiting");
  if (card && event.detail.successful && event.detail.xhr.status === 204) {
    const next = card.nextElementSibling || card.previousElementSibling;
    card.remove();
    next?.querySelector("button")?.focus();
    htmx.trigger(document.body, "approvals");
    if (!document.querySelector(".approvals .waiting")) location.reload();
  }
});
