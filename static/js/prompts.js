// Prompts of the library: filled in, then inserted into the composer to be read before sending.

import { isComposing } from "./keys.js";
import { whole } from "./run.js";
import { focusUnlessTouch } from "./touch.js";

const text = document.getElementById("text");
const dialog = document.getElementById("prompt-dialog");
const form = dialog.querySelector("form");
const fields = dialog.querySelector(".prompt-variables");
const typed = new Map(); // by prompt, so that a closed form loses nothing
let prompt;

export function offerPrompts() {
  form.addEventListener("submit", filled);
  dialog.addEventListener("close", keep);
  dialog.addEventListener("keydown", (event) => {
    if (isComposing(event) || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  document.addEventListener("click", saveAsPrompt);
  dialog.querySelector("[data-cancel]").addEventListener("click", () => dialog.close());
  const asked = new URLSearchParams(location.search).get("prompt");
  if (!asked) return;
  history.replaceState(null, "", location.pathname); // a reload doesn't insert it again
  usePrompt(asked, append);
}

// `insert` puts the finished text where it belongs.
export async function usePrompt(pk, insert) {
  const answer = await fetch(text.dataset.promptParts.replace("/0/", `/${pk}/`)).catch(() => null);
  if (!answer?.ok) {
    document.getElementById("notice").textContent = dialog.dataset.missing;
    return;
  }
  prompt = { pk, insert, ...(await answer.json()) };
  if (prompt.variables.length) return ask();
  finish([]);
}

function ask() {
  dialog.querySelector("h2").textContent = prompt.title;
  fields.replaceChildren(...prompt.variables.map(field));
  dialog.showModal();
  fields.querySelector("textarea, select").focus();
}

function field({ name, default: preset, options }, at) {
  const label = document.createElement("label");
  const title = document.createElement("span");
  title.textContent = name;
  const input = document.createElement(options.length ? "select" : "textarea");
  input.className = "field";
  input.name = `variable-${at}`;
  if (options.length) input.append(...options.map((value) => new Option(value, value)));
  else input.rows = 1;
  input.value = typed.get(`${prompt.pk} ${name}`) ?? preset;
  label.append(title, input);
  return label;
}

const values = () => [...fields.querySelectorAll("textarea, select")].map(({ value }) => value);

function keep() {
  prompt?.variables.forEach(({ name }, at) => typed.set(`${prompt.pk} ${name}`, values()[at]));
}

function filled(event) {
  event.preventDefault();
  dialog.close();
  finish(values());
}

function finish(answers) {
  prompt.insert(prompt.pieces.map((piece) => (typeof piece === "number" ? answers[piece] : piece)).join(""));
  focusUnlessTouch(text);
}

async function saveAsPrompt({ target }) {
  const question = target.closest?.("[data-save-prompt]")?.closest(".message").querySelector(".question");
  if (!question) return;
  const long = question.querySelector("[data-whole]");
  const saving = document.getElementById("save-prompt");
  saving.elements.text.value = long ? await whole(long.href) : question.querySelector("p").textContent;
  saving.requestSubmit();
}

// A draft that is there already stays.
function append(words) {
  const isEmpty = !text.value.trim();
  text.value = isEmpty ? words : `${text.value.trimEnd()}\n\n${words}`;
  text.dispatchEvent(new Event("input", { bubbles: true }));
}
