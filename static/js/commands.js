// "/" starts a command: workflows are suggested while typing.

import { isComposing } from "./keys.js";

const text = document.getElementById("text");
const offers = document.getElementById("offers");
const COMMAND = "/workflow";
const MOST = 8;

let known;
let marked = -1;

export function offerCommands() {
  text.addEventListener("input", offer);
  text.addEventListener("keydown", pressed, true); // before Enter sends and Escape stops
  text.addEventListener("blur", close);
  offers.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const option = event.target.closest("[role=option]");
    if (option) take(option);
  });
}

async function offer(event) {
  if (event.isComposing) return;
  const typed = wanted();
  if (typed === null) return close();
  await learn();
  if (wanted() !== typed) return; // the text changed meanwhile
  const like = typed.toLowerCase();
  const found = known?.filter(({ name }) => name.toLowerCase().includes(like) && name.toLowerCase() !== like) ?? [];
  offers.replaceChildren(...found.slice(0, MOST).map(option));
  marked = -1;
  show(found.length > 0);
}

// Returns the start of a name, or null if no command is being typed.
function wanted() {
  const { value } = text;
  if (!value.startsWith("/") || /[\n=]/.test(value)) return null;
  if (COMMAND.startsWith(value)) return "";
  return value.startsWith(`${COMMAND} `) ? value.slice(COMMAND.length + 1).replace(/^"/, "") : null;
}

// Without the server there are no suggestions; the next attempt asks again.
async function learn() {
  if (known) return;
  const answer = await fetch(text.dataset.completions).catch(() => null);
  if (answer?.ok) known = (await answer.json()).workflows;
}

function option({ name, about }, at) {
  const item = document.createElement("li");
  item.id = `offer-${at}`;
  item.role = "option";
  item.ariaSelected = "false";
  item.dataset.text = `${COMMAND} ${/[\s="'「」\\]/.test(name) ? JSON.stringify(name) : name} `;
  const title = document.createElement("strong");
  title.textContent = name;
  const meaning = document.createElement("span");
  meaning.textContent = about;
  item.append(title, meaning);
  return item;
}

function pressed(event) {
  if (isComposing(event) || offers.hidden) return;
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const isTaken = marked >= 0 && !event.shiftKey && ["Enter", "Tab"].includes(event.key);
  if (!move && !isTaken && event.key !== "Escape") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (move) mark(move);
  else if (isTaken) take(offers.children[marked]);
  else close();
}

function mark(by) {
  const count = offers.children.length;
  offers.children[marked]?.setAttribute("aria-selected", "false");
  marked = marked < 0 && by < 0 ? count - 1 : (marked + by + count) % count;
  const item = offers.children[marked];
  item.ariaSelected = "true";
  item.scrollIntoView({ block: "nearest" });
  text.setAttribute("aria-activedescendant", item.id);
}

function take(item) {
  text.value = item.dataset.text;
  text.dispatchEvent(new Event("input", { bubbles: true }));
  close();
}

function close() {
  show(false);
}

function show(isOpen) {
  offers.hidden = !isOpen;
  text.removeAttribute("aria-activedescendant");
}
