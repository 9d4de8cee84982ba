// The form of a model: the models that the server offers as a combobox, what the price list says
// about the chosen one, and a test with streamed output.

import { isComposing } from "./keys.js";

const button = document.querySelector("[data-test]");
const model = document.getElementById("id_model");
const offer = document.getElementById("models-offer");
const field = (name) => document.getElementById(`id_${name}`);
const WAIT = 250;
const MOST = 200;

button?.addEventListener("click", test);
if (offer && model) {
  offerModels();
  offerFacts();
}
focusFirst();

// The first empty field of a new model: a key or a URL, else the name.
function focusFirst() {
  if (!offer || !field("label")) return;
  const first = ["base_url", "api_key", "region", "model"].map(field).find((one) => one && !one.value && one.offsetParent);
  first?.focus();
}

// The list is asked for once per server and key, when the name is about to be typed or by hand.
function offerModels() {
  model.closest(".form-field").append(...offer.content.children);
  const list = document.getElementById("listed-models");
  const panel = document.querySelector(".listed-models");
  const [ask, status] = [panel.querySelector("button"), panel.querySelector("[role=status]")];
  let [asked, found, active] = ["", [], -1];
  model.setAttribute("role", "combobox");
  model.setAttribute("aria-controls", list.id);
  model.setAttribute("aria-autocomplete", "list");
  model.setAttribute("aria-expanded", "false");

  const say = (text, isGood = true) => {
    status.textContent = text;
    status.classList.toggle("wrong", !isGood);
  };
  async function load() {
    asked = described();
    const current = asked;
    say(status.dataset.busy);
    ask.disabled = true;
    const body = new FormData(model.form);
    // Without a URL or a key a request would only fail, and be recorded for nothing.
    if (!isAddressed()) body.set("table", "1");
    try {
      const response = await fetch(offer.dataset.url, { method: "POST", body });
      if (!response.ok) throw new Error(response.statusText);
      const { models, sentence, isGood } = await response.json();
      if (current !== asked) return;
      found = models;
      say(sentence, isGood);
      if (document.activeElement === model) open();
      else render();
    } catch {
      say(status.dataset.broken, false);
    } finally {
      ask.disabled = false;
    }
  }
  function render(isFiltered = true) {
    const words = fold(model.value).split(/\s+/).filter(Boolean);
    const matching = isFiltered ? found.filter(({ name, note }) => words.every((word) => fold(`${name} ${note}`).includes(word))) : found;
    active = -1;
    list.replaceChildren(...matching.slice(0, MOST).map(option));
  }
  function option({ name, note }, at) {
    const row = document.createElement("div");
    row.id = `listed-model-${at}`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", "false");
    row.dataset.value = prefixed(name);
    const [title, about] = [document.createElement("span"), document.createElement("small")];
    title.textContent = name;
    about.textContent = note;
    row.append(title, about);
    return row;
  }
  function open() {
    // What is chosen already hides nothing else.
    render(!found.some(({ name }) => prefixed(name) === model.value.trim()));
    show(list.children.length > 0);
  }
  function show(isOpen) {
    list.hidden = !isOpen;
    model.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) model.removeAttribute("aria-activedescendant");
  }
  function move(by) {
    if (list.hidden) open();
    const rows = [...list.children];
    if (!rows.length) return;
    active = (active + by + rows.length + (active < 0 && by < 0 ? 1 : 0)) % rows.length;
    rows.forEach((row, at) => row.setAttribute("aria-selected", String(at === active)));
    rows[active].scrollIntoView({ block: "nearest" });
    model.setAttribute("aria-activedescendant", rows[active].id);
  }
  function choose(row) {
    model.value = row.dataset.value;
    show(false);
    model.dispatchEvent(new Event("change", { bubbles: true }));
  }

  ask.addEventListener("click", () => load().then(() => model.focus()));
  model.addEventListener("focus", () => (described() === asked ? open() : load()));
  model.addEventListener("input", () => {
    render();
    show(list.children.length > 0);
  });
  model.addEventListener("blur", () => show(false));
  model.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && !list.hidden && active >= 0) choose(list.children[active]);
    else if (event.key === "Escape" && !list.hidden) show(false);
    else return;
    event.preventDefault();
  });
  // Before the blur, which would close the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => {
    const row = target.closest("[role=option]");
    if (row) choose(row);
  });
  for (const one of ["base_url", "api_key"].map(field)) {
    one?.addEventListener("change", () => {
      found = [];
      render();
      show(false);
      say("");
      asked = "";
    });
  }
}

// Prices, window and abilities of the price list are examples in the empty fields.
function offerFacts() {
  let timer, shown;
  const label = field("label");
  const proposed = () => !label || !label.value || label.value === label.dataset.proposed;
  async function load() {
    const name = model.value.trim();
    if (!name || name === shown) return;
    shown = name;
    const query = new URLSearchParams({ provider: offer.dataset.provider, model: name });
    const response = await fetch(`${offer.dataset.facts}?${query}`);
    if (!response.ok || name !== shown) return;
    const facts = await response.json();
    if (label && proposed()) label.value = label.dataset.proposed = facts.label;
    for (const [id, value] of [["context_window", facts.window], ["input_price", facts.inputPrice], ["output_price", facts.outputPrice]]) {
      const one = field(id);
      if (one) one.placeholder = value ?? "";
    }
    for (const select of document.querySelectorAll("[data-ability]")) {
      const known = facts.abilities[select.dataset.ability];
      const words = known === null ? "" : ` (${known ? offer.dataset.yes : offer.dataset.no})`;
      const auto = [...select.options].find(({ value }) => value === "auto");
      if (auto) auto.textContent = offer.dataset.auto + words;
    }
  }
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(load, WAIT);
  };
  model.addEventListener("input", later);
  model.addEventListener("change", later);
  load();
}

function described() {
  const values = ["base_url", "api_key"].map((name) => field(name)?.value);
  const prefix = field("preset")?.value === "other" ? model.value.split("/")[0] : "";
  return JSON.stringify([field("provider")?.value, prefix, ...values]);
}

function isAddressed() {
  const isSaved = document.querySelector(".saved-key");
  return Boolean(isSaved) || ["base_url", "api_key"].some((name) => field(name)?.value.trim());
}

function prefixed(name) {
  return field("preset")?.value === "other" ? `${model.value.split("/")[0]}/${name}` : name;
}

function fold(text) {
  return text.normalize("NFKC").toLowerCase();
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
      if (piece.tested && field("tested")) field("tested").value = piece.tested;
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
