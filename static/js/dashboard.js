// The filters of a dashboard apply as soon as they are chosen; without JavaScript there is a button. The
// dates close like a menu.

import { isComposing } from "./keys.js";

document.addEventListener("click", ({ target }) => closeDates((dates) => !dates.contains(target)));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !isComposing(event)) closeDates(() => true);
});

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

function closeDates(isLeft) {
  const dates = document.querySelector(".dates[open]");
  if (!dates || !isLeft(dates)) return;
  dates.open = false;
  if (dates.contains(document.activeElement)) dates.querySelector("summary").focus();
}
