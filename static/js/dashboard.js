// Applies a filter as soon as it is chosen; without JavaScript there is a button.
for (const form of document.querySelectorAll("[data-filters]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-apply]")) form.requestSubmit();
  });
  form.addEventListener("submit", () => {
    for (const field of form.elements) {
      if (field.name && !field.value) field.disabled = true; // a short address
    }
  });
}
