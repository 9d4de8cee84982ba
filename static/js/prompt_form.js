// The form of a prompt warns before unsaved text is lost.

const form = document.querySelector(".prompt-form");
const fields = [...form.querySelectorAll("input:not([type=hidden]), textarea")];
let isSaving = false;

form.addEventListener("submit", () => (isSaving = true));
addEventListener("pageshow", () => (isSaving = false));
addEventListener("beforeunload", (event) => {
  if (!isSaving && (form.hasAttribute("data-unsaved") || fields.some(isChanged))) event.preventDefault();
});

function isChanged(field) {
  if (field.matches("[type=radio], [type=checkbox]")) return field.checked !== field.defaultChecked;
  return field.value !== field.defaultValue;
}
