// The reference of the API: Swagger UI, which is large, so only this page loads it.

import { isDark } from "./color_scheme.js";

const place = document.getElementById("api-docs");
const root = document.documentElement;

function updateColors() {
  root.classList.toggle("dark-mode", isDark()); // as Swagger UI calls it
}

function load(element) {
  return new Promise((resolve, reject) => {
    element.addEventListener("load", resolve);
    element.addEventListener("error", reject);
    document.head.append(element);
  });
}

async function show() {
  const { document: url, script, stylesheet } = place.dataset;
  try {
    await Promise.all([
      load(Object.assign(document.createElement("link"), { rel: "stylesheet", href: stylesheet })),
      load(Object.assign(document.createElement("script"), { src: script })),
    ]);
    place.replaceChildren();
    globalThis.SwaggerUIBundle({
      url,
      domNode: place,
      deepLinking: true,
      docExpansion: "list",
      defaultModelsExpandDepth: -1,
      tryItOutEnabled: true,
      validatorUrl: null, // it would be asked about every document
    });
  } catch {
    place.textContent = place.dataset.failed;
  }
}

updateColors();
new MutationObserver(updateColors).observe(root, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", updateColors);
show();
