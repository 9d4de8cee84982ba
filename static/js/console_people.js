// Pages of people in the console: the fields of the chosen kind of invitation, and copied links.

for (const form of document.querySelectorAll(".people-form")) {
  const show = () => {
    const chosenWay = form.querySelector("[name=way]:checked")?.value;
    for (const part of form.querySelectorAll("[data-way]")) part.hidden = chosenWay && part.dataset.way !== chosenWay;
  };
  form.addEventListener("change", show);
  show();
}

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy-link]");
  if (!button) return;
  const field = button.closest(".link-row").querySelector("input");
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    document.execCommand("copy"); // without HTTPS there is no clipboard
  }
  button.querySelector("span").textContent = button.dataset.done;
});
