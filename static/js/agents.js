// The form of an agent: searches tools by name, and tests the draft.

import { isComposing } from "./keys.js";

const form = document.getElementById("agent_form");
const trial = document.getElementById("try");
const MARKED = "tried-and-wrong";

form?.querySelector("[data-look-for]")?.addEventListener("input", lookFor);
if (trial) begin();

function lookFor({ target }) {
  const words = target.value.trim().toLowerCase();
  const rows = [...form.querySelectorAll(".agent-tools tbody tr")];
  for (const row of rows) row.hidden = !row.dataset.name.includes(words);
  form.querySelector("[data-none]").hidden = rows.some((row) => !row.hidden);
}

function begin() {
  const question = trial.querySelector("textarea");
  trial.hidden = false;
  trial.querySelector("[data-ask]").addEventListener("click", ask);
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isComposing(event)) ask();
  });
  const frame = trial.querySelector("iframe");
  frame.addEventListener("load", () => settle(frame));
  new MutationObserver(() => dress(frame)).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}

async function ask() {
  const button = trial.querySelector("[data-ask]");
  if (button.getAttribute("aria-disabled") === "true") return;
  button.setAttribute("aria-disabled", "true");
  forgive();
  say("busy");
  try {
    const answer = await fetch(trial.dataset.try, { method: "POST", body: new FormData(form) });
    const told = await answer.json();
    if (told.errors) blame(told.errors);
    else show(told);
  } catch {
    say("lost");
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

function show({ page, trace }) {
  const frame = trial.querySelector("iframe");
  const link = trial.querySelector("[data-trace]");
  say("");
  link.href = trace;
  link.hidden = frame.hidden = false;
  frame.src = page;
}

function say(what) {
  const place = trial.querySelector("[data-said]");
  place.textContent = what ? place.dataset[what] : "";
}

function blame(errors) {
  say("wrong");
  for (const [name, sentences] of Object.entries(errors)) mark(name, sentences);
  const first = form.querySelector(`.${MARKED}`);
  first?.scrollIntoView({ block: "center" });
  first?.parentElement.querySelector("input:not([type=hidden]), select, textarea")?.focus({ preventScroll: true });
}

function mark(name, sentences) {
  const input = form.elements[name];
  const field = `.field-${CSS.escape(name)}`;
  const row = form.querySelector(`.fieldBox${field}`) ?? form.querySelector(`.form-row${field}`);
  const place = row ?? input?.closest("td") ?? trial;
  const list = document.createElement("ul");
  list.className = `errorlist ${MARKED}`;
  list.append(...sentences.map((sentence) => Object.assign(document.createElement("li"), { textContent: sentence })));
  (row?.matches(".fieldBox") ? row.parentElement : place).prepend(list);
  row?.classList.add("errors");
  input?.setAttribute?.("aria-invalid", "true");
}

function forgive() {
  for (const list of form.querySelectorAll(`.${MARKED}`)) {
    list.closest(".form-row, .fieldBox")?.classList.remove("errors");
    list.parentElement.querySelector(".fieldBox.errors")?.classList.remove("errors");
    list.remove();
  }
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

// Fits the frame's height and theme to its content and page.
function settle(frame) {
  const main = frame.contentDocument.querySelector("main");
  dress(frame);
  if (main) new ResizeObserver(() => (frame.height = main.scrollHeight)).observe(main);
}

function dress(frame) {
  const root = frame.contentDocument?.documentElement;
  if (root) root.dataset.theme = document.documentElement.dataset.theme ?? "auto";
}
