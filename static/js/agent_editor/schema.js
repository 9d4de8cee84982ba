// The JSON Schema editor: examples, errors at their position, the fields, and a try.

import { announceInput } from "../text_fields.js";

const WAIT_MS = 350;
const INDENT = "  ";

export function startSchema(page, form) {
  const root = page.querySelector("[data-schema-editor]");
  const text = form.elements.output_schema;
  const problem = root.querySelector("[data-schema-problem]");
  const preview = root.querySelector("[data-schema-preview]");
  const sample = root.querySelector("[data-schema-sample]");
  let timer;
  let problemPosition;
  let requestCount = 0;

  function checkLater() {
    clearTimeout(timer);
    timer = setTimeout(checkSchema, WAIT_MS);
  }

  async function checkSchema() {
    const request = ++requestCount;
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.set("schema", text.value);
    body.set("sample", sample.value);
    try {
      const response = await fetch(page.dataset.schema, { method: "POST", body });
      if (response.ok && request === requestCount) showResult(await response.json());
    } catch {
      // The next keystroke asks again; publishing checks in any case.
    }
  }

  function showResult(result) {
    problemPosition = result.at;
    problem.hidden = !result.problem;
    problem.firstChild.textContent = result.problem ?? "";
    problem.querySelector("[data-go-to]").hidden = problemPosition === undefined;
    text.toggleAttribute("data-invalid", Boolean(result.problem));
    preview.hidden = !result.fields?.length;
    if (result.fields) root.querySelector("[data-schema-fields]").replaceChildren(...result.fields.flatMap(fieldElements));
    const verdict = root.querySelector("[data-schema-verdict]");
    verdict.textContent = result.sentence ?? "";
    verdict.dataset.tone = result.fits ? "green" : "red";
  }

  function fieldElements(field) {
    const name = Object.assign(document.createElement("dt"), { textContent: field.name });
    const badge = Object.assign(document.createElement("span"), { className: "badge" });
    badge.textContent = field.isRequired ? preview.dataset.required : preview.dataset.optional;
    name.append(" ", badge);
    const parts = [field.kind, ...field.limits, field.about].filter(Boolean);
    return [name, Object.assign(document.createElement("dd"), { textContent: parts.join(" · ") })];
  }

  function setSchema(value) {
    text.value = value;
    announceInput(text);
    text.focus();
  }

  problem.prepend(document.createTextNode(""));
  root.addEventListener("click", ({ target }) => {
    const example = target.closest("[data-schema-example]");
    if (example) setSchema(example.dataset.schemaExample);
    else if (target.closest("[data-schema-format]")) {
      try {
        setSchema(JSON.stringify(JSON.parse(text.value), null, INDENT));
      } catch {
        checkSchema();
      }
    } else if (target.closest("[data-go-to]")) {
      text.focus();
      text.setSelectionRange(problemPosition, problemPosition + 1);
    }
  });
  text.addEventListener("input", checkLater);
  sample.addEventListener("input", checkLater);
  if (text.value.trim()) checkSchema();
}
