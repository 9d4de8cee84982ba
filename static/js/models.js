// The form of a model: fields per provider, and a test with streamed output.

const provider = document.getElementById("id_provider");
const button = document.querySelector("[data-test]");

if (provider) {
  provider.addEventListener("change", fit);
  fit();
}
button?.addEventListener("click", test);

function fit() {
  const examples = JSON.parse(provider.dataset.examples)[provider.value] ?? {};
  for (const name of ["model", "base_url"]) {
    const field = document.getElementById(`id_${name}`);
    if (field) field.placeholder = examples[name] ?? "";
  }
  for (const field of document.querySelectorAll("[data-for]")) {
    const row = field.closest(".form-row");
    const isNeeded = field.dataset.for.split(" ").includes(provider.value);
    // Filled or invalid fields are never hidden.
    const isSaid = field.value.trim() || row.classList.contains("errors");
    row.hidden = !isNeeded && !isSaid;
  }
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
