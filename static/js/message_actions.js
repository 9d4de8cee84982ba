// What can be done with a message: edit, regenerate, switch branches, copy, quote, delete, listen.

import { isComposing } from "./keys.js";
import { readableText } from "./prose_text.js";
import { whole, write } from "./run.js";
import { toEnd } from "./scroll.js";
import { speech } from "./speech.js";
import { focusUnlessTouch } from "./touch.js";

const messages = document.getElementById("messages");
const composer = document.getElementById("text");
const menu = document.getElementById("agent-menu");
const dialog = document.getElementById("delete-message");
const COPIED_MS = 1600;
const MOST_LOADS = 100; // of earlier messages, until a linked one is found
let quoted = ""; // selected text, before the click on a button can clear it
let switched = null; // the button that switched branches, and where it was
let turned = null; // the button that opened the menu
let socket = null; // queues while it is closed
let byKeyboard = false; // whether a deletion was confirmed with it
let awaited = ""; // the id of the new branch's first message

export function actOnMessages() {
  document.addEventListener("click", clicked);
  document.addEventListener("pointerdown", selected);
  document.addEventListener("submit", submitted, true);
  document.addEventListener("htmx:oobBeforeSwap", answered);
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => detail.target.id === "deleted-messages" && offerUndo());
  document.addEventListener("htmx:wsAfterMessage", settled);
  document.addEventListener("htmx:wsOpen", sendAgain);
  document.addEventListener("htmx:load", offer);
  messages?.addEventListener("keydown", typed);
  composer?.addEventListener("keydown", recall);
  menu?.addEventListener("toggle", ({ newState }) => turned?.setAttribute("aria-expanded", newState === "open"));
  dialog?.addEventListener("htmx:afterSwap", () => dialog.open || dialog.showModal());
  speech.start();
  offer();
  openLinked();
}

// Only what works here is offered: another agent or model if there is one, speech if the browser has it.
function offer() {
  const isMany = menu?.querySelectorAll("[data-regenerate-with]").length > 1;
  for (const button of document.querySelectorAll("[data-regenerate-menu][hidden]"))
    button.hidden = !isMany && !modelsFor(button);
  for (const button of document.querySelectorAll("[data-speak][hidden]"))
    button.hidden = !speech.isSupported && !button.dataset.voice;
}

const ACTIONS = {
  "[data-edit]": (link) => edit(link.closest(".message")),
  ".message-editor [data-cancel]": (button) => close(button.closest("form")),
  ".message-editor [data-save]": (button) => submit(button.closest("form"), "correct"),
  "[data-switch]": startSwitch,
  "[data-regenerate]": (button) => regenerate(button),
  "[data-regenerate-menu]": openMenu,
  "[data-regenerate-with]": (button) => choose({ agent: button.dataset.regenerateWith }),
  "[data-regenerate-model]": (button) => choose({ model: button.dataset.regenerateModel }),
  "[data-copy-text]": copyText,
  "[data-quote]": quote,
  "[data-speak]": (button) => speech.toggle(button, button.closest(".run").querySelector(".answer")),
};

function clicked(event) {
  if (dialog && (event.target === dialog || event.target.closest?.("#delete-message [data-close]"))) {
    event.preventDefault();
    return dialog.close();
  }
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  for (const [selector, act] of Object.entries(ACTIONS)) {
    const found = event.target.closest?.(selector);
    if (!found) continue;
    if (found.matches("a")) event.preventDefault();
    act(found);
    return;
  }
}

function pk(message) {
  return message.id.replace("message-", "");
}

function send(frame) {
  socket?.send(JSON.stringify(frame), document.getElementById("main"));
}

// crypto.randomUUID isn't available over plain http from another machine.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Editing

async function edit(message) {
  const open = document.querySelector(".message-editor");
  if (open && open.closest(".message") === message) return open.elements.text.focus();
  if (open) close(open, true);
  const question = message.querySelector(".question");
  const long = question.querySelector("[data-whole]");
  const kept = sessionStorage.getItem(draftKey(message));
  const text = kept ?? (long ? await whole(long.href) : question.querySelector("p").textContent);
  const form = document.getElementById("message-editor").content.cloneNode(true).firstElementChild;
  form.elements.message.value = pk(message);
  form.elements.text.value = text;
  message.dataset.editing = "";
  question.before(form);
  htmx.process(form);
  form.elements.text.addEventListener("input", changed);
  grow(form.elements.text);
  form.elements.text.focus();
  form.elements.text.setSelectionRange(text.length, text.length);
  form.scrollIntoView({ block: "nearest" });
}

function draftKey(message) {
  return `ashiato-edit-${pk(message)}`;
}

// Other text is another message: it is sent with a new id.
function changed({ target }) {
  target.form.elements.client_id.value = "";
  sessionStorage.setItem(draftKey(target.closest(".message")), target.value);
  grow(target);
}

function grow(text) {
  if (CSS.supports("field-sizing", "content")) return;
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

function close(form, keepsText = false) {
  const message = form.closest(".message");
  if (!keepsText) sessionStorage.removeItem(draftKey(message));
  delete message.dataset.editing;
  form.remove();
  message.querySelector("[data-edit]")?.focus({ preventScroll: true });
}

function submit(form, type) {
  form.elements.type.value = type;
  form.requestSubmit();
}

function submitted(event) {
  if (event.target.closest("#delete-message")) return confirmDelete(event);
  const form = event.target;
  if (!form.matches(".message-editor")) return;
  if (form.elements.text.readOnly && form.dataset.sending !== "again") return stop(event);
  form.elements.client_id.value ||= newId();
  awaited = form.elements.client_id.value;
  form.querySelector("#edit-problem").textContent = "";
  form.elements.text.readOnly = true;
  form.dataset.sending = "";
}

function stop(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

// A refused text stays in the editor, with the reason.
function answered({ target, detail }) {
  const form = document.querySelector(".message-editor");
  if (!form) return;
  if (target.id === "edit-problem" && detail.fragment.textContent.trim()) release(form);
  if (target.id === `question-${form.elements.message.value}` && form.dataset.sending !== undefined) close(form);
  if (target === form.closest(".message") || target === messages) {
    if (form.dataset.sending !== undefined) sessionStorage.removeItem(draftKey(form.closest(".message")));
  }
}

function release(form) {
  delete form.dataset.sending;
  form.elements.text.readOnly = false;
  form.elements.type.value = "edit";
  form.elements.text.focus();
}

// A reply may have been lost with the connection; the id makes sure that it is sent once.
function sendAgain({ detail }) {
  socket = detail.socketWrapper;
  const form = document.querySelector(".message-editor[data-sending]");
  if (!form || detail.socketWrapper.queue.length) return;
  form.dataset.sending = "again";
  form.requestSubmit();
}

function typed(event) {
  const form = event.target.closest?.(".message-editor");
  if (!form || isComposing(event)) return;
  const isCommand = event.ctrlKey || event.metaKey;
  if (event.key === "Escape") act(() => close(form));
  else if (isCommand && event.key === "Enter") act(() => submit(form, "edit"));
  else if (isCommand && event.key.toLowerCase() === "s") act(() => submit(form, "correct"));

  function act(what) {
    stop(event);
    what();
  }
}

// ↑ in the empty composer edits the last message.
function recall(event) {
  const isPlain = !(event.shiftKey || event.altKey || event.ctrlKey || event.metaKey);
  if (event.key !== "ArrowUp" || !isPlain || composer.value || isComposing(event)) return;
  const mine = [...messages.querySelectorAll("[data-edit]")].at(-1);
  if (!mine) return;
  event.preventDefault();
  edit(mine.closest(".message"));
}

// Branches

function startSwitch(button) {
  const message = button.closest(".message");
  switched = { to: JSON.parse(button.getAttribute("hx-vals")).message, way: button.dataset.switch };
  switched.top = message.getBoundingClientRect().top;
}

// The reader stays at the fork, and so does the focus. A new branch is at the end.
function settled() {
  if (awaited && document.querySelector(`[data-client-id="${CSS.escape(awaited)}"]`)) {
    awaited = "";
    toEnd();
    if (document.activeElement === document.body) focusUnlessTouch(composer); // the pressed button is gone
  }
  const message = switched && document.getElementById(`message-${switched.to}`);
  if (!message) return;
  scrollBy({ top: message.getBoundingClientRect().top - switched.top, behavior: "instant" });
  const ways = [switched.way, switched.way === "next" ? "previous" : "next"];
  const buttons = ways.map((way) => message.querySelector(`[data-switch="${way}"]:not(:disabled)`));
  switched = null;
  (buttons[0] ?? buttons[1])?.focus({ preventScroll: true });
}

// A link to a message or a run may lead to another branch, or above what was loaded.
async function openLinked() {
  const [, kind, id] = location.hash.match(/^#(message|run)-(\d+)$/) ?? [];
  const find = () => document.getElementById(`${kind}-${id}`);
  if (!id || !messages || find()) return;
  const query = new URLSearchParams(location.search);
  const name = kind === "run" ? "run" : "leaf";
  if (!query.has(name) && !query.has("message")) {
    query.set(name, id);
    location.replace(`?${query}${location.hash}`);
    return;
  }
  for (let loads = 0; !find() && loads < MOST_LOADS; loads += 1) {
    const link = messages.querySelector(".earlier:not([data-gap])");
    if (!link) return;
    await htmx.ajax("GET", link.getAttribute("hx-get"), { source: link, target: link, swap: "outerHTML" });
  }
  find()?.scrollIntoView({ block: "start" });
}

// Regenerating

function regenerate(button, choice = {}) {
  const message = button.closest(".message");
  if (button.dataset.sent) return;
  button.dataset.sent = "true";
  setTimeout(() => delete button.dataset.sent, COPIED_MS);
  awaited = newId();
  send({ type: "regenerate", message: pk(message), client_id: awaited, ...choice });
}

// The models, if the agent that answered lets its users choose one.
function modelsFor(button) {
  const agent = menu?.querySelector(`[data-regenerate-with="${CSS.escape(button.dataset.agent)}"]`);
  return agent && "allowsModel" in agent.dataset ? document.getElementById("agent-menu-models") : null;
}

function openMenu(button) {
  turned = menu.anchorElement = button;
  const models = document.getElementById("agent-menu-models");
  if (models) models.hidden = !modelsFor(button);
  for (const item of menu.querySelectorAll("[data-regenerate-model]")) {
    item.hidden = models.hidden;
    item.setAttribute("aria-current", item.dataset.regenerateModel === button.dataset.model);
  }
  for (const item of menu.querySelectorAll("[data-regenerate-with]"))
    item.setAttribute("aria-current", item.dataset.regenerateWith === button.dataset.agent);
  menu.showPopover();
  const { bottom, top, left } = button.getBoundingClientRect();
  const fits = bottom + menu.offsetHeight < innerHeight - 8;
  menu.style.top = `${fits ? bottom + 4 : Math.max(8, top - menu.offsetHeight - 4)}px`;
  menu.style.left = `${Math.max(8, Math.min(left, innerWidth - menu.offsetWidth - 8))}px`;
  menu.querySelector("[role=menuitem]:not([hidden])").focus();
}

function choose(choice) {
  menu.hidePopover();
  if (turned?.isConnected) regenerate(turned, choice);
}

// Copying and quoting

async function copyText(button) {
  await write(answerText(button.closest(".run")));
  button.querySelector("use").setAttribute("href", "#i-done");
  setTimeout(() => button.querySelector("use").setAttribute("href", "#i-text"), COPIED_MS);
}

function answerText(run) {
  return readableText(run.querySelector(".answer"));
}

function selected({ target }) {
  const run = target.closest?.("[data-quote]")?.closest(".run");
  const selection = getSelection();
  const isHere = run && selection.rangeCount && run.contains(selection.getRangeAt(0).commonAncestorContainer);
  quoted = isHere ? selection.toString().trim() : "";
}

async function quote(button) {
  const run = button.closest(".run");
  const long = run.querySelector("[data-copy-from]");
  const source = run.querySelector('template[id$="-source"]');
  const text = quoted || (long ? await whole(long.dataset.copyFrom) : (source?.content.textContent ?? answerText(run)));
  quoted = "";
  const lines = text.trim().split("\n").map((line) => `> ${line}`.trimEnd());
  const before = composer.value.trimEnd();
  composer.value = `${before}${before ? "\n\n" : ""}${lines.join("\n")}\n\n`;
  composer.dispatchEvent(new Event("input", { bubbles: true }));
  composer.focus();
  composer.setSelectionRange(composer.value.length, composer.value.length);
  composer.scrollTop = composer.scrollHeight;
}

// Deleting

function confirmDelete(event) {
  if (!socket) return; // without a socket, the form is sent
  stop(event);
  const form = event.target;
  byKeyboard = event.submitter.matches(":focus-visible");
  send({ type: "delete_message", message: form.elements.message.value, scope: event.submitter.value });
  dialog.close();
}

function offerUndo() {
  const { dataset, textContent: text } = document.getElementById("deleted-messages");
  const { undo, place, seconds } = dataset;
  if (!undo) return;
  const detail = { text, undo, ids: [place], seconds: Number(seconds), isFocused: byKeyboard };
  document.dispatchEvent(new CustomEvent("chats:notice", { detail }));
}
