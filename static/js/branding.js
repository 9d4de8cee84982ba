// The color input beside the color's text, and logos in the preview before they are saved.

const form = document.getElementById("branding-form");
const preview = document.getElementById("branding-preview");
const picker = form?.querySelector("[data-color-for]");
const chosenLogos = new Map(); // of the modes, as data URLs

function onColorPicked() {
  const field = document.getElementById(picker.dataset.colorFor);
  field.value = picker.value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function onInput({ target }) {
  if (target.id === picker.dataset.colorFor && /^#[0-9a-f]{6}$/i.test(target.value)) picker.value = target.value;
}

function onFileChosen({ target }) {
  const mode = { brand_logo: "light", brand_logo_dark: "dark" }[target.dataset.logo];
  if (!mode) return;
  const [file] = target.files;
  if (!file) {
    chosenLogos.delete(mode);
    return;
  }
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    chosenLogos.set(mode, reader.result);
    showChosenLogos();
  });
  reader.readAsDataURL(file);
}

function showChosenLogos() {
  for (const image of preview.querySelectorAll("[data-logo]")) {
    const other = image.dataset.logo === "light" ? "dark" : "light";
    const url = chosenLogos.get(image.dataset.logo) ?? (image.hasAttribute("src") ? null : chosenLogos.get(other));
    if (!url) continue;
    image.src = url;
    image.hidden = false;
    image.nextElementSibling.hidden = true;
  }
}

if (form) {
  picker.addEventListener("input", onColorPicked);
  form.addEventListener("input", onInput);
  form.addEventListener("change", onFileChosen);
  preview.addEventListener("htmx:afterSwap", showChosenLogos);
}
