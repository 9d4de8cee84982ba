// The form of a model: fields per provider, the models that the server offers, and a test with
// streamed output.

const provider = document.getElementById("id_provider");
const button = document.querySelector("[data-test]");
const model = document.getElementById("id_model");
const offer = document.getElementById("models-offer");

if (provider) {
  provider.addEventListener("change", fit);
  fit();
}
button?.addEventListener("click", test);
if (offer && model) offerModels();

function fit() {
  const examples = JSON.parse(provider.dataset.examples)[provider.value] ?? {};
  for (const name of ["model", "base_url"]) {
    const field = document.getElementById(`id_${name}`);
    if (field) field.placeholder = examples[name] ?? "";
  }
  const help = JSON.parse(provider.dataset.urlHelp)[provider.value];
  const text = document.querySelector("#id_base_url_helptext > div, #id_base_url_helptext");
  if (help && text) text.textContent = help;
  for (const field of document.querySelectorAll("[data-for]")) {
    const row = field.closest(".form-row");
    const isNeeded = field.dataset.for.split(" ").includes(provider.value);
    // Filled or invalid fields are never hidden.
    const isSaid = field.value.trim() || row.classList.contains("errors");
    row.hidden = !isNeeded && !isSaid;
  }
}

// The list is asked for once per server and key: when the name is about to be typed, or by hand.
function offerModels() {
  model.closest(".form-row").append(...offer.content.children);
  const list = document.getElementById("listed-models");
  const panel = document.querySelector(".listed-models");
  const [ask, status] = [panel.querySelector("button"), panel.querySelector("[role=status]")];
  let asked = "";
  const show = (text, isGood = true) => {
    status.textContent = text;
    status.classList.toggle("wrong", !isGood);
  };
  async function load() {
    asked = described();
    const current = asked;
    show(status.dataset.busy);
    ask.disabled = true;
    try {
      const response = await fetch(offer.dataset.url, { method: "POST", body: new FormData(model.form) });
      if (!response.ok) throw new Error(response.statusText);
      const { models, sentence, isGood } = await response.json();
      if (current !== asked) return;
      list.replaceChildren(...models.map(({ name, note }) => new Option(note, prefixed(name))));
      show(sentence, isGood);
    } catch {
      show(status.dataset.broken, false);
    } finally {
      ask.disabled = false;
    }
  }
  ask.addEventListener("click", load);
  model.addEventListener("focus", () => {
    if (described() !== asked && isAddressed()) load();
  });
  for (const field of [provider, ...["base_url", "api_key"].map((name) => document.getElementById(`id_${name}`))]) {
    field?.addEventListener("change", () => {
      list.replaceChildren();
      show("");
      asked = "";
    });
  }
}

function described() {
  const values = ["base_url", "api_key"].map((name) => document.getElementById(`id_${name}`)?.value);
  const prefix = provider?.value === "other" ? model.value.split("/")[0] : "";
  return JSON.stringify([provider?.value, prefix, ...values]);
}

// Without a URL or a key a request would only fail, and be recorded for nothing.
function isAddressed() {
  return ["base_url", "api_key"].some((name) => document.getElementById(`id_${name}`)?.value.trim());
}

function prefixed(name) {
  return provider?.value === "other" ? `${model.value.split("/")[0]}/${name}` : name;
}

async function test(event) {
  event.preventDefault();
  const part = (name) => document.querySelector(`.test-panel .${name}`);
  const [heard, words, lines] = ["heard", "words", "lines"].map(part);
  words.textContent = lines.textContent = "";
  words.hidden = part("broken").hidden = true;
  heard.hidden = part("progress").hidden = false;
  button.disabled = true;
  try {
    for await (const piece of asked()) {
      if (piece.said) words.append(piece.said);
      words.hidden = !words.textContent;
      if (piece.html) lines.insertAdjacentHTML("beforeend", piece.html);
    }
  } catch {
    part("broken").hidden = false;
  }
  part("progress").hidden = true;
  button.disabled = false;
}

async function* asked() {
  const response = await fetch(button.formAction, {
    method: "POST",
    body: new FormData(button.form),
    headers: { Accept: "application/x-ndjson" },
  });
  if (!response.ok) throw new Error(response.statusText);
  let rest = "";
  for await (const text of texts(response.body)) {
    const whole = (rest + text).split("\n");
    rest = whole.pop();
    yield* whole.filter(Boolean).map(JSON.parse);
  }
}

async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield piece.value;
}
