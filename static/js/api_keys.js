// API keys: copies a secret, an address or an example.

import { copyAtOnce, copyText } from "./clipboard.js";

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copies]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copies);
  const text = source.value ?? source.textContent;
  await copyText(text).catch(() => copyAtOnce(text)); // the browser may refuse
  const label = button.querySelector("span");
  if (label) label.textContent = button.dataset.done;
  else button.setAttribute("aria-label", (button.title = button.dataset.done));
});
