// The form of a model: the models that its connection offers as a combobox, what the price list
// says about the chosen one, and a test with streamed output.

import { readLines } from "./json_lines.js";
import { isComposing } from "./keys.js";
import { moveSelection } from "./listbox.js";
import { hasAllWords, searchWords } from "./text_search.js";

const button = document.querySelector("[data-test]");
const model = document.getElementById("id_model");
const offerTemplate = document.getElementById("models-offer");
const field = (name) => document.getElementById(`id_${name}`);
const LOAD_DELAY_MS = 250;
const MAX_OPTIONS = 200;

button?.addEventListener("click", runTest);
if (offerTemplate && model) {
  startModelList();
  startFacts();
}
// A new model starts with its name.
if (offerTemplate && field("label") && !model?.value) model?.focus();

// What was found before is loaded when the name is about to be typed; the server is asked by hand.
function startModelList() {
  model.closest(".form-field").append(...offerTemplate.content.children);
  const list = document.getElementById("listed-models");
  const panel = document.querySelector(".listed-models");
  const askButton = panel.querySelector("button");
  const status = panel.querySelector("[role=status]");
  let loadedFor = "";
  let listedModels = [];
  let activeIndex = -1;
  model.setAttribute("role", "combobox");
  model.setAttribute("aria-controls", list.id);
  model.setAttribute("aria-autocomplete", "list");
  model.setAttribute("aria-expanded", "false");

  const showStatus = (text, isGood = true) => {
    status.textContent = text;
    status.classList.toggle("wrong", !isGood);
  };
  async function loadModels(isRefresh = false) {
    loadedFor = field("connection").value;
    const requestedFor = loadedFor;
    showStatus(status.dataset.busy);
    askButton.disabled = true;
    const body = new FormData(model.form);
    if (isRefresh) body.set("refresh", "1");
    try {
      const response = await fetch(offerTemplate.dataset.url, { method: "POST", body });
      if (!response.ok) throw new Error(response.statusText);
      const { models, sentence, isGood } = await response.json();
      if (requestedFor !== loadedFor) return;
      listedModels = models;
      showStatus(sentence, isGood);
      if (document.activeElement === model) openList();
      else renderOptions();
    } catch {
      showStatus(status.dataset.broken, false);
    } finally {
      askButton.disabled = false;
    }
  }
  function renderOptions(isFiltered = true) {
    const words = isFiltered ? searchWords(model.value) : [];
    const matching = listedModels.filter(({ name, note }) => hasAllWords(`${name} ${note}`, words));
    activeIndex = -1;
    list.replaceChildren(...matching.slice(0, MAX_OPTIONS).map(optionElement));
  }
  function optionElement({ name, note }, index) {
    const row = document.createElement("div");
    row.id = `listed-model-${index}`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", "false");
    row.dataset.value = name;
    row.append(
      Object.assign(document.createElement("span"), { textContent: name }),
      Object.assign(document.createElement("small"), { textContent: note }),
    );
    return row;
  }
  function openList() {
    // What is chosen already hides nothing else.
    renderOptions(!listedModels.some(({ name }) => name === model.value.trim()));
    setOpen(list.children.length > 0);
  }
  function setOpen(isOpen) {
    list.hidden = !isOpen;
    model.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) model.removeAttribute("aria-activedescendant");
  }
  function chooseOption(row) {
    model.value = row.dataset.value;
    setOpen(false);
    model.dispatchEvent(new Event("change", { bubbles: true }));
  }

  askButton.addEventListener("click", () => loadModels(true).then(() => model.focus()));
  model.addEventListener("focus", () => (field("connection").value === loadedFor ? openList() : loadModels()));
  model.addEventListener("input", () => {
    renderOptions();
    setOpen(list.children.length > 0);
  });
  model.addEventListener("blur", () => setOpen(false));
  model.addEventListener("keydown", (event) => {
    if (isComposing(event)) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      if (list.hidden) openList();
      if (list.children.length) activeIndex = moveSelection(model, list.children, activeIndex, step);
    } else if (event.key === "Enter" && !list.hidden && activeIndex >= 0) chooseOption(list.children[activeIndex]);
    else if (event.key === "Escape" && !list.hidden) setOpen(false);
    else return;
    event.preventDefault();
  });
  // Before the blur, which would close the list.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => {
    const row = target.closest("[role=option]");
    if (row) chooseOption(row);
  });
  field("connection")?.addEventListener("change", () => {
    listedModels = [];
    renderOptions();
    setOpen(false);
    showStatus("");
    loadedFor = "";
  });
}

// Prices, window and abilities of the price list are examples in the empty fields.
function startFacts() {
  let timer;
  let shownModel;
  const label = field("label");
  async function loadFacts() {
    const name = model.value.trim();
    if (!name || name === shownModel) return;
    shownModel = name;
    const query = new URLSearchParams({ connection: field("connection").value, model: name });
    const response = await fetch(`${offerTemplate.dataset.facts}?${query}`);
    if (!response.ok || name !== shownModel) return;
    const facts = await response.json();
    const isOwnLabel = label?.value && label.value !== label.dataset.proposed;
    if (label && !isOwnLabel) label.value = label.dataset.proposed = facts.label;
    for (const [id, value] of [["context_window", facts.window], ["input_price", facts.inputPrice], ["output_price", facts.outputPrice]]) {
      const input = field(id);
      if (input) input.placeholder = value ?? "";
    }
    for (const select of document.querySelectorAll("[data-ability]")) {
      const ability = facts.abilities[select.dataset.ability];
      const suffix = ability === null ? "" : ` (${ability ? offerTemplate.dataset.yes : offerTemplate.dataset.no})`;
      const auto = [...select.options].find(({ value }) => value === "auto");
      if (auto) auto.textContent = offerTemplate.dataset.auto + suffix;
    }
  }
  const loadSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(loadFacts, LOAD_DELAY_MS);
  };
  model.addEventListener("input", loadSoon);
  model.addEventListener("change", loadSoon);
  loadFacts();
}

async function runTest(event) {
  event.preventDefault();
  const part = (name) => document.querySelector(`.test-panel .${name}`);
  const [result, said, lines] = ["heard", "words", "lines"].map(part);
  said.textContent = lines.textContent = "";
  said.hidden = part("broken").hidden = true;
  result.hidden = part("progress").hidden = false;
  button.disabled = true;
  try {
    for await (const piece of testPieces()) {
      if (piece.said) said.append(piece.said);
      said.hidden = !said.textContent;
      if (piece.html) lines.insertAdjacentHTML("beforeend", piece.html);
      if (piece.tested && field("tested")) field("tested").value = piece.tested;
    }
  } catch {
    part("broken").hidden = false;
  }
  part("progress").hidden = true;
  button.disabled = false;
}

async function* testPieces() {
  const response = await fetch(button.formAction, {
    method: "POST",
    body: new FormData(button.form),
    headers: { Accept: "application/x-ndjson" },
  });
  if (!response.ok) throw new Error(response.statusText);
  yield* readLines(response);
}
