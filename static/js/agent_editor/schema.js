// The JSON Schema editor: examples, errors at their position, the fields, and a try.

const WAIT_MS = 350;
const INDENT = "  ";

export function start(page, form) {
  const root = page.querySelector("[data-schema-editor]");
  const text = form.elements.output_schema;
  const problem = root.querySelector("[data-schema-problem]");
  const preview = root.querySelector("[data-schema-preview]");
  const sample = root.querySelector("[data-schema-sample]");
  let timer, place, latest = 0;

  function later() {
    clearTimeout(timer);
    timer = setTimeout(check, WAIT_MS);
  }

  async function check() {
    const turn = ++latest;
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.set("schema", text.value);
    body.set("sample", sample.value);
    try {
      const answer = await fetch(page.dataset.schema, { method: "POST", body });
      if (answer.ok && turn === latest) show(await answer.json());
    } catch {
      // The next keystroke asks again; publishing checks in any case.
    }
  }

  function show(told) {
    place = told.at;
    problem.hidden = !told.problem;
    problem.firstChild.textContent = told.problem ?? "";
    problem.querySelector("[data-go-to]").hidden = place === undefined;
    text.toggleAttribute("data-invalid", Boolean(told.problem));
    preview.hidden = !told.fields?.length;
    if (told.fields) root.querySelector("[data-schema-fields]").replaceChildren(...told.fields.flatMap(field));
    const verdict = root.querySelector("[data-schema-verdict]");
    verdict.textContent = told.sentence ?? "";
    verdict.dataset.tone = told.fits ? "green" : "red";
  }

  function field(one) {
    const name = Object.assign(document.createElement("dt"), { textContent: one.name });
    const need = Object.assign(document.createElement("span"), { className: "badge", textContent: one.isRequired ? preview.dataset.required : preview.dataset.optional });
    name.append(" ", need);
    const parts = [one.kind, ...one.limits, one.about].filter(Boolean);
    return [name, Object.assign(document.createElement("dd"), { textContent: parts.join(" · ") })];
  }

  function write(value) {
    text.value = value;
    text.dispatchEvent(new Event("input", { bubbles: true }));
    text.focus();
  }

  function format() {
    try {
      write(JSON.stringify(JSON.parse(text.value), null, INDENT));
    } catch {
      check();
    }
  }

  problem.prepend(document.createTextNode(""));
  root.addEventListener("click", ({ target }) => {
    const example = target.closest("[data-schema-example]");
    if (example) write(example.dataset.schemaExample);
    else if (target.closest("[data-schema-format]")) format();
    else if (target.closest("[data-go-to]")) {
      text.focus();
      text.setSelectionRange(place, place + 1);
    }
  });
  text.addEventListener("input", later);
  sample.addEventListener("input", later);
  if (text.value.trim()) check();
}
