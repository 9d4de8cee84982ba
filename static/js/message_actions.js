// What can be done with a message: edit, regenerate, switch branches, copy, quote, delete, listen.

import { copyText } from "./clipboard.js";
import { newClientId } from "./connection.js";
import { hasModifier, isComposing } from "./keys.js";
import { showDone } from "./prose_parts.js";
import { readableText } from "./prose_text.js";
import { fetchText, questionText } from "./run.js";
import { scrollToEnd } from "./scroll.js";
import { speech } from "./speech.js";
import { announceInput, growToFit } from "./text_fields.js";
import { focusUnlessTouch } from "./touch.js";

const messages = document.getElementById("messages");
const composer = document.getElementById("text");
const menu = document.getElementById("agent-menu");
const dialog = document.getElementById("delete-message");
const BUSY_MS = 1600;
const MENU_HEIGHT = 260; // of the longest menu below an answer
const MENU_WIDTH = 250;
const MAX_LOADS = 100; // of earlier messages, until a linked one is found
let quotedText = ""; // selected text, before the click on a button can clear it
let lastSwitch = null; // { to, direction, of, top } of the button that switched branches
let menuButton = null; // the button that opened the menu
let socket = null; // queues while it is closed
let deletedByKeyboard = false; // whether a deletion was confirmed with it
let awaitedId = ""; // the id of the new branch's first message

export function startMessageActions() {
  document.addEventListener("click", onClick);
  document.addEventListener("pointerdown", onPointerdown);
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("beforetoggle", placeMenu, true);
  document.addEventListener("htmx:oobBeforeSwap", onBeforeSwap);
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => detail.target.id === "deleted-messages" && offerUndoDelete());
  document.addEventListener("htmx:wsAfterMessage", onMessage);
  document.addEventListener("htmx:wsOpen", onSocketOpen);
  document.addEventListener("htmx:load", showOffered);
  messages?.addEventListener("keydown", onKeydown);
  composer?.addEventListener("keydown", onComposerKeydown);
  menu?.addEventListener("toggle", ({ newState }) => menuButton?.setAttribute("aria-expanded", newState === "open"));
  dialog?.addEventListener("htmx:afterSwap", () => dialog.open || dialog.showModal());
  speech.start();
  showOffered();
  openLinked();
}

// Only what works here is offered: another agent or model if there is one, speech if the browser has it.
function showOffered() {
  const hasOtherAgents = menu?.querySelectorAll("[data-regenerate-with]").length > 1;
  for (const button of document.querySelectorAll("[data-regenerate-menu][hidden]"))
    button.hidden = !hasOtherAgents && !modelsFor(button);
  for (const button of document.querySelectorAll("[data-speak][hidden]"))
    button.hidden = !speech.isSupported && !button.dataset.voice;
}

const ACTIONS = {
  "[data-edit]": (link) => editMessage(link.closest(".message")),
  ".message-editor [data-cancel]": (button) => closeEditor(button.closest("form")),
  ".message-editor [data-save]": (button) => submitEditor(button.closest("form"), "correct"),
  "[data-switch]": startSwitch,
  "[data-regenerate]": (button) => regenerate(button),
  "[data-regenerate-menu]": openMenu,
  "[data-regenerate-with]": (button) => chooseRegeneration({ agent: button.dataset.regenerateWith }),
  "[data-regenerate-model]": (button) => chooseRegeneration({ model: button.dataset.regenerateModel }),
  "[data-copy-text]": copyAnswer,
  "[data-quote]": quoteAnswer,
  "[data-speak]": (button) => speech.toggle(button, button.closest(".run").querySelector(".answer")),
};

function onClick(event) {
  if (dialog && (event.target === dialog || event.target.closest?.("#delete-message [data-close]"))) {
    event.preventDefault();
    return dialog.close();
  }
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  for (const [selector, act] of Object.entries(ACTIONS)) {
    const control = event.target.closest?.(selector);
    if (!control) continue;
    if (control.matches("a")) event.preventDefault();
    act(control);
    control.closest(".more-menu")?.hidePopover();
    return;
  }
}

function messageId(message) {
  return message.id.replace("message-", "");
}

function send(frame) {
  socket?.send(JSON.stringify(frame), document.getElementById("main"));
}

// Editing

async function editMessage(message) {
  const open = document.querySelector(".message-editor");
  if (open && open.closest(".message") === message) return open.elements.text.focus();
  if (open) closeEditor(open, true);
  const question = message.querySelector(".question");
  const text = sessionStorage.getItem(draftKey(message)) ?? (await questionText(question));
  const form = document.getElementById("message-editor").content.cloneNode(true).firstElementChild;
  form.elements.message.value = messageId(message);
  form.elements.text.value = text;
  message.dataset.editing = "";
  question.before(form);
  htmx.process(form);
  form.elements.text.addEventListener("input", onEditorInput);
  growToFit(form.elements.text);
  form.elements.text.focus();
  form.elements.text.setSelectionRange(text.length, text.length);
  form.scrollIntoView({ block: "nearest" });
}

function draftKey(message) {
  return `ashiato-edit-${messageId(message)}`;
}

// Other text is another message: it is sent with a new id.
function onEditorInput({ target }) {
  target.form.elements.client_id.value = "";
  sessionStorage.setItem(draftKey(target.closest(".message")), target.value);
  growToFit(target);
}

function closeEditor(form, keepsDraft = false) {
  const message = form.closest(".message");
  if (!keepsDraft) sessionStorage.removeItem(draftKey(message));
  delete message.dataset.editing;
  form.remove();
  message.querySelector("[data-edit]")?.focus({ preventScroll: true });
}

function submitEditor(form, type) {
  form.elements.type.value = type;
  form.requestSubmit();
}

function onSubmit(event) {
  if (event.target.closest("#delete-message")) return onDeleteConfirmed(event);
  const form = event.target;
  if (!form.matches(".message-editor")) return;
  if (form.elements.text.readOnly && form.dataset.sending !== "again") return cancelEvent(event);
  form.elements.client_id.value ||= newClientId();
  awaitedId = form.elements.client_id.value;
  form.querySelector("#edit-problem").textContent = "";
  form.elements.text.readOnly = true;
  form.dataset.sending = "";
}

function cancelEvent(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

// A refused text stays in the editor, with the reason.
function onBeforeSwap({ target, detail }) {
  const form = document.querySelector(".message-editor");
  if (!form) return;
  if (target.id === "edit-problem" && detail.fragment.textContent.trim()) {
    delete form.dataset.sending;
    form.elements.text.readOnly = false;
    form.elements.type.value = "edit";
    form.elements.text.focus();
  }
  if (target.id === `question-${form.elements.message.value}` && form.dataset.sending !== undefined) closeEditor(form);
  if (target === form.closest(".message") || target === messages) {
    if (form.dataset.sending !== undefined) sessionStorage.removeItem(draftKey(form.closest(".message")));
  }
}

// A reply may have been lost with the connection; the id makes sure that it is sent once.
function onSocketOpen({ detail }) {
  socket = detail.socketWrapper;
  const form = document.querySelector(".message-editor[data-sending]");
  if (!form || detail.socketWrapper.queue.length) return;
  form.dataset.sending = "again";
  form.requestSubmit();
}

function onKeydown(event) {
  const form = event.target.closest?.(".message-editor");
  if (!form || isComposing(event)) return;
  const type = { enter: "edit", s: "correct" }[event.key.toLowerCase()];
  const isSubmit = type && (event.ctrlKey || event.metaKey);
  if (event.key !== "Escape" && !isSubmit) return;
  cancelEvent(event);
  if (isSubmit) submitEditor(form, type);
  else closeEditor(form);
}

// ↑ in the empty composer edits the last message.
function onComposerKeydown(event) {
  if (event.key !== "ArrowUp" || event.shiftKey || hasModifier(event) || composer.value || isComposing(event)) return;
  const editButton = [...messages.querySelectorAll("[data-edit]")].at(-1);
  if (!editButton) return;
  event.preventDefault();
  editMessage(editButton.closest(".message"));
}

// Branches

function startSwitch(button) {
  const { top } = button.closest(".message").getBoundingClientRect();
  const { switch: direction, of } = button.dataset;
  lastSwitch = { to: JSON.parse(button.getAttribute("hx-vals")).message, direction, of, top };
}

// The reader stays at the fork, and so does the focus. A new branch is at the end.
function onMessage() {
  if (awaitedId && document.querySelector(`[data-client-id="${CSS.escape(awaitedId)}"]`)) {
    awaitedId = "";
    scrollToEnd();
    if (document.activeElement === document.body) focusUnlessTouch(composer); // the pressed button is gone
  }
  const message = lastSwitch && document.getElementById(`message-${lastSwitch.to}`);
  if (!message) return;
  scrollBy({ top: message.getBoundingClientRect().top - lastSwitch.top, behavior: "instant" });
  const directions = [lastSwitch.direction, lastSwitch.direction === "next" ? "previous" : "next"];
  const pager = `[data-of="${lastSwitch.of}"]:not(:disabled)`;
  const buttons = directions.map((direction) => message.querySelector(`[data-switch="${direction}"]${pager}`));
  lastSwitch = null;
  (buttons[0] ?? buttons[1])?.focus({ preventScroll: true });
}

// A link to a message or a run may lead to another branch, or above what was loaded.
async function openLinked() {
  const [, kind, id] = location.hash.match(/^#(message|run)-(\d+)$/) ?? [];
  const linkedElement = () => document.getElementById(`${kind}-${id}`);
  if (!id || !messages || linkedElement()) return;
  const query = new URLSearchParams(location.search);
  const parameter = kind === "run" ? "run" : "leaf";
  if (!query.has(parameter) && !query.has("message")) {
    query.set(parameter, id);
    location.replace(`?${query}${location.hash}`);
    return;
  }
  for (let loads = 0; !linkedElement() && loads < MAX_LOADS; loads += 1) {
    const link = messages.querySelector(".earlier:not([data-gap])");
    if (!link) return;
    await htmx.ajax("GET", link.getAttribute("hx-get"), { source: link, target: link, swap: "outerHTML" });
  }
  linkedElement()?.scrollIntoView({ block: "start" });
}

// Regenerating

function regenerate(button, choice = {}) {
  const message = button.closest(".message");
  if (button.dataset.sent) return;
  button.dataset.sent = "true";
  setTimeout(() => delete button.dataset.sent, BUSY_MS);
  awaitedId = newClientId();
  send({ type: "regenerate", message: messageId(message), client_id: awaitedId, ...choice });
}

// The models, if the agent that answered lets its users choose one.
function modelsFor(button) {
  const agent = menu?.querySelector(`[data-regenerate-with="${CSS.escape(button.dataset.agent)}"]`);
  return agent && "allowsModel" in agent.dataset ? document.getElementById("agent-menu-models") : null;
}

function openMenu(button) {
  menuButton = menu.anchorElement = button;
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

function chooseRegeneration(choice) {
  menu.hidePopover();
  if (menuButton?.isConnected) regenerate(menuButton, choice);
}

// Next to its button, above it near the end of the window.
function placeMenu({ target, newState }) {
  if (newState !== "open" || !target.matches(".more-menu")) return;
  const { top, bottom, left } = document.querySelector(`[popovertarget="${target.id}"]`).getBoundingClientRect();
  const isBelow = innerHeight - bottom > MENU_HEIGHT;
  target.style.top = isBelow ? `${bottom + 4}px` : "auto";
  target.style.bottom = isBelow ? "auto" : `${innerHeight - top + 4}px`;
  target.style.left = `${Math.max(8, Math.min(left, innerWidth - MENU_WIDTH))}px`;
}

// Copying and quoting

async function copyAnswer(button) {
  await copyText(answerText(button.closest(".run")));
  showDone(button);
}

function answerText(run) {
  return readableText(run.querySelector(".answer"));
}

function onPointerdown({ target }) {
  if (target.closest?.("[data-quote]")) return; // its menu was opened first
  const run = target.closest?.(".actions")?.closest(".run");
  const selection = getSelection();
  const isHere = run && selection.rangeCount && run.contains(selection.getRangeAt(0).commonAncestorContainer);
  quotedText = isHere ? selection.toString().trim() : "";
}

async function quoteAnswer(button) {
  const run = button.closest(".run");
  const wholeButton = run.querySelector("[data-copy-from]");
  const source = run.querySelector('template[id$="-source"]');
  const loadText = () => (wholeButton ? fetchText(wholeButton.dataset.copyFrom) : (source?.content.textContent ?? answerText(run)));
  const text = quotedText || (await loadText());
  quotedText = "";
  const lines = text.trim().split("\n").map((line) => `> ${line}`.trimEnd());
  const before = composer.value.trimEnd();
  composer.value = `${before}${before ? "\n\n" : ""}${lines.join("\n")}\n\n`;
  announceInput(composer);
  composer.focus();
  composer.setSelectionRange(composer.value.length, composer.value.length);
  composer.scrollTop = composer.scrollHeight;
}

// Deleting

function onDeleteConfirmed(event) {
  if (!socket) return; // without a socket, the form is sent
  cancelEvent(event);
  const form = event.target;
  deletedByKeyboard = event.submitter.matches(":focus-visible");
  send({ type: "delete_message", message: form.elements.message.value, scope: event.submitter.value });
  dialog.close();
}

function offerUndoDelete() {
  const { dataset, textContent: text } = document.getElementById("deleted-messages");
  const { undo, place, seconds } = dataset;
  if (!undo) return;
  const detail = { text, undo, ids: [place], seconds: Number(seconds), isFocused: deletedByKeyboard };
  document.dispatchEvent(new CustomEvent("chats:notice", { detail }));
}
