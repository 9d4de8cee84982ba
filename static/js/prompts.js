// Prompts of the library: filled in, then inserted into the composer to be read before sending.

import { isComposing } from "./keys.js";
import { questionText } from "./run.js";
import { announceInput } from "./text_fields.js";
import { focusUnlessTouch } from "./touch.js";

const text = document.getElementById("text");
const dialog = document.getElementById("prompt-dialog");
const form = dialog.querySelector("form");
const fields = dialog.querySelector(".prompt-variables");
const typedTexts = new Map(); // by prompt, so that a closed form loses nothing
let prompt;

export function startPrompts() {
  form.addEventListener("submit", onSubmit);
  dialog.addEventListener("close", keepTyped);
  dialog.addEventListener("keydown", (event) => {
    if (isComposing(event) || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  document.addEventListener("click", onSaveClick);
  dialog.querySelector("[data-cancel]").addEventListener("click", () => dialog.close());
  const promptId = new URLSearchParams(location.search).get("prompt");
  if (!promptId) return;
  history.replaceState(null, "", location.pathname); // a reload doesn't insert it again
  usePrompt(promptId, appendToDraft);
}

// `insert` puts the finished text where it belongs.
export async function usePrompt(pk, insert) {
  const response = await fetch(text.dataset.promptParts.replace("/0/", `/${pk}/`)).catch(() => null);
  if (!response?.ok) {
    document.getElementById("notice").textContent = dialog.dataset.missing;
    return;
  }
  prompt = { pk, insert, ...(await response.json()) };
  if (!prompt.variables.length) return insertPrompt([]);
  dialog.querySelector("h2").textContent = prompt.title;
  fields.replaceChildren(...prompt.variables.map(variableField));
  dialog.showModal();
  fields.querySelector("textarea, select").focus();
}

function variableField({ name, default: preset, options }, index) {
  const label = document.createElement("label");
  const title = document.createElement("span");
  title.textContent = name;
  const input = document.createElement(options.length ? "select" : "textarea");
  input.className = "field";
  input.name = `variable-${index}`;
  if (options.length) input.append(...options.map((value) => new Option(value, value)));
  else input.rows = 1;
  input.value = typedTexts.get(`${prompt.pk} ${name}`) ?? preset;
  label.append(title, input);
  return label;
}

const fieldValues = () => [...fields.querySelectorAll("textarea, select")].map(({ value }) => value);

function keepTyped() {
  prompt?.variables.forEach(({ name }, index) => typedTexts.set(`${prompt.pk} ${name}`, fieldValues()[index]));
}

function onSubmit(event) {
  event.preventDefault();
  dialog.close();
  insertPrompt(fieldValues());
}

function insertPrompt(answers) {
  prompt.insert(prompt.pieces.map((piece) => (typeof piece === "number" ? answers[piece] : piece)).join(""));
  focusUnlessTouch(text);
}

async function onSaveClick({ target }) {
  const question = target.closest?.("[data-save-prompt]")?.closest(".message").querySelector(".question");
  if (!question) return;
  const saveForm = document.getElementById("save-prompt");
  saveForm.elements.text.value = await questionText(question);
  saveForm.requestSubmit();
}

// A draft that is there already stays.
function appendToDraft(insertion) {
  const isEmpty = !text.value.trim();
  text.value = isEmpty ? insertion : `${text.value.trimEnd()}\n\n${insertion}`;
  announceInput(text);
}
