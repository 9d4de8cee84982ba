// The page of a connection: ticks, the search among many models, and tests of all that are on.

import { readLines } from "./json_lines.js";
import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

const ticks = [...document.querySelectorAll("[name=models]")];
const count = document.querySelector(".connection-models [data-count]");
const chat = document.querySelector("[data-chat-with]");
const search = document.querySelector("[data-search-models]");
const testButton = document.querySelector("[data-test-all]");
const progress = document.querySelector(".connection-models .progress");

// The first empty field of a new connection: a URL, a key or a region.
if (!document.querySelector(".connection-models")) {
  const inputs = ["prefix", "base_url", "region", "api_key"].map((name) => document.getElementById(`id_${name}`));
  inputs.find((input) => input && !input.value && input.offsetParent)?.focus();
}
for (const tick of ticks) tick.addEventListener("change", showChoice);
search?.addEventListener("input", filterRows);
search?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !isComposing(event)) event.preventDefault();
});
testButton?.addEventListener("click", testAll);
addEventListener("pageshow", showChoice);

function showChoice() {
  const chosen = ticks.filter((tick) => tick.checked);
  if (count) count.textContent = count.dataset.text.replace("{on}", chosen.length).replace("{total}", count.dataset.total);
  if (testButton) testButton.hidden = !chosen.length;
  if (!chat) return;
  chat.hidden = !chosen.length;
  if (!chosen.length) return;
  chat.value = chosen[0].value;
  chat.querySelector("span").textContent = chat.dataset.text.replace("{model}", chosen[0].dataset.name);
}

function filterRows() {
  const words = searchWords(search.value);
  const rows = ticks.map((tick) => tick.closest("tr"));
  for (const row of rows) row.hidden = !hasAllWords(row.dataset.search, words);
  document.querySelector("[data-no-match]").hidden = rows.some((row) => !row.hidden);
}

async function testAll(event) {
  event.preventDefault();
  const rows = ticks.filter((tick) => tick.checked).map((tick) => tick.closest("tr"));
  const waiting = new Set(rows);
  const showProgress = () => {
    progress.textContent = `${progress.dataset.busy} ${rows.length - waiting.size}/${rows.length}`;
  };
  progress.hidden = false;
  testButton.disabled = true;
  for (const row of rows) row.setAttribute("aria-busy", "true");
  showProgress();
  try {
    const response = await fetch(testButton.formAction, {
      method: "POST",
      body: new FormData(testButton.form),
      headers: { Accept: "application/x-ndjson" },
    });
    if (!response.ok) throw new Error(response.statusText);
    for await (const { model, html } of readLines(response)) {
      const row = document.querySelector(`tr[data-model="${CSS.escape(model)}"]`);
      if (!row) continue;
      showResult(row, html);
      waiting.delete(row);
      showProgress();
    }
    progress.hidden = true;
  } catch {
    progress.textContent = progress.dataset.broken;
  }
  for (const row of rows) row.removeAttribute("aria-busy");
  testButton.disabled = false;
}

function showResult(row, html) {
  const result = document.createElement("template");
  result.innerHTML = html;
  for (const cell of [...result.content.children]) row.querySelector(`[data-cell=${cell.dataset.cell}]`).replaceWith(cell);
  row.removeAttribute("aria-busy");
  if (row.querySelector("[name=models_shown]")) return;
  // It was saved for the test: without its tick it is turned off.
  const shown = Object.assign(document.createElement("input"), { type: "hidden", name: "models_shown", value: row.dataset.model });
  row.cells[0].append(shown);
}
