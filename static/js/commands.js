// Suggestions while typing: "/" lists commands and prompts, "@" agents.

import { isComposing } from "./keys.js";
import { mentioned, mentionable, note } from "./mentions.js";
import { usePrompt } from "./prompts.js";

const text = document.getElementById("text");
const offers = document.getElementById("offers");
const commands = document.getElementById("commands");
const WORKFLOW = "/workflow";
const FRESH = 30_000; // prompts can be saved in another tab

const [TALL, LOW, GAP] = [288, 96, 16]; // px

let known = { at: 0, workflows: [], prompts: [] };
let shown = [];
let marked = -1;

export function offerCommands() {
  text.addEventListener("input", offer);
  text.addEventListener("compositionend", offer); // Safari's last input is still composed
  text.addEventListener("keydown", pressed, true); // before Enter sends and Escape stops
  text.addEventListener("blur", close);
  offers.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the field keeps the focus
    const option = event.target.closest("[role=option]");
    if (option) take(shown[[...offers.children].indexOf(option)]);
  });
  note("");
}

async function offer(event) {
  if (event.isComposing && event.type === "input") return;
  const before = typed();
  note(before.startsWith("@") ? "list" : "");
  if (!/^[/@]/.test(before)) return close();
  if (before.startsWith("/")) await learn();
  if (typed() !== before) return; // the text changed meanwhile
  show(before.startsWith("@") ? agents(before.slice(1)) : candidates(before));
}

// Returns what is before the caret, with the signs that Japanese keyboards type.
function typed() {
  const before = text.value.slice(0, text.selectionStart);
  return before.includes("\n") ? "" : before.replace(/^／/, "/").replace(/^＠/, "@");
}

function candidates(before) {
  if (before.startsWith(`${WORKFLOW} `)) return workflows(before.slice(WORKFLOW.length + 1).replace(/^["「]/, ""));
  if (/\s/.test(before)) return [];
  const like = plain(before.slice(1));
  return [...pageCommands(), ...prompts(), ...workflows("")]
    .filter(({ name, about }) => name.includes(like) || (like && plain(about).includes(like)))
    .sort((one, other) => !one.name.startsWith(like) - !other.name.startsWith(like));
}

// Each command presses what the page already has; what isn't there isn't offered.
function pageCommands() {
  return [...commands.children].flatMap((item) => {
    const { command: name, press, insert, href } = item.dataset;
    const there = press ? [...document.querySelectorAll(press)].at(-1) : null;
    if (press && !there) return [];
    const act = () => {
      replace(insert ?? "");
      if (href) location.assign(href);
      there?.click();
    };
    return [{ name, label: `/${name}`, about: item.textContent, act }];
  });
}

function prompts() {
  return known.prompts.map(({ pk, name, title }) => ({
    name: plain(name),
    label: `/${name}`,
    about: title,
    act: () => {
      const end = text.selectionStart; // the form takes the focus, and the caret with it
      usePrompt(pk, (words) => replace(words, end));
    },
  }));
}

function workflows(start) {
  if (start.includes("=")) return [];
  const like = start.toLowerCase();
  const found = known.workflows.filter(({ name }) => name.toLowerCase().includes(like));
  if (found.some(({ name }) => name.toLowerCase() === like)) return [];
  return found.map(({ name, about }) => ({
    name: plain(`workflow ${name}`),
    label: `${WORKFLOW} ${name}`,
    about,
    act: () => replace(`${WORKFLOW} ${/[\s="'「」\\]/.test(name) ? JSON.stringify(name) : name} `),
  }));
}

function agents(start) {
  if (mentioned(`@${start}`)) return [];
  const [like, chosen] = [plain(start), text.form.elements.agent?.value];
  return mentionable()
    .filter(({ name }) => name !== chosen && plain(name).includes(like))
    .map(({ name, about }) => ({ label: `@${name}`, about, act: () => replace(`@${name} `) }));
}

// Full-width letters and capitals are found, too.
function plain(words) {
  return words.normalize("NFKC").toLowerCase().trim();
}

// Without the server there are fewer suggestions; the next attempt asks again.
async function learn() {
  if (Date.now() - known.at < FRESH) return;
  const { completions, prompts: library } = text.dataset;
  const [first, second] = await Promise.all([completions, library].map(read));
  if (first && second) known = { at: Date.now(), ...first, ...second };
}

async function read(address) {
  const answer = await fetch(address).catch(() => null);
  return answer?.ok ? answer.json() : null;
}

function show(found) {
  shown = found;
  offers.replaceChildren(...found.map(option));
  offers.hidden = !found.length;
  offers.scrollTop = 0;
  marked = -1;
  text.removeAttribute("aria-activedescendant");
  if (!found.length) return;
  place();
  mark(1);
}

// Above the composer, unless there is more room below, as on a new chat.
function place() {
  const { top, bottom } = offers.parentElement.getBoundingClientRect();
  const [above, below] = [top - GAP, (visualViewport?.height ?? innerHeight) - bottom - GAP];
  const isBelow = below > above;
  offers.toggleAttribute("data-below", isBelow);
  offers.style.maxHeight = `${Math.max(LOW, Math.min(TALL, isBelow ? below : above))}px`;
}

function option({ label, about }, at) {
  const item = document.createElement("li");
  item.id = `offer-${at}`;
  item.role = "option";
  item.ariaSelected = "false";
  const title = document.createElement("strong");
  title.textContent = label;
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
  else if (isTaken) take(shown[marked]);
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

function take(chosen) {
  close();
  chosen.act();
}

// Replaces what was typed; what follows the caret stays.
function replace(words, end = text.selectionStart) {
  text.setRangeText(words, 0, end, "end");
  text.dispatchEvent(new Event("input", { bubbles: true }));
}

function close() {
  if (shown.length) show([]);
}
