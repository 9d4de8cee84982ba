// The page of a group: members as chips, search in what it can use, and a Save bar that says what
// changed.

import { isComposing } from "./keys.js";
import { hasAllWords, searchWords } from "./text_search.js";

const page = document.querySelector(".group-page[data-one]");
const form = page?.closest("form");
const nameField = document.getElementById("person-name");

if (form) {
  form.addEventListener("input", showChanges);
  form.addEventListener("change", showChanges);
  form.addEventListener("reset", () => {
    for (const chip of page.querySelectorAll(".member.added")) chip.remove();
    setTimeout(showChanges); // after the reset
  });
  page.addEventListener("click", onClick);
  for (const search of page.querySelectorAll("[data-filter]")) search.addEventListener("input", filter);
  nameField?.addEventListener("chosen", addMember);
  nameField?.addEventListener("keydown", (event) => {
    if (!["Enter", ","].includes(event.key) || isComposing(event) || !nameField.value.trim()) return;
    event.preventDefault();
    addMember();
  });
  showChanges();
}

function onClick({ target }) {
  const button = target.closest("button.remove");
  if (!button) return;
  button.closest(".member").remove();
  showChanges();
  nameField.focus();
}

function addMember() {
  const name = nameField.value.trim();
  nameField.value = "";
  const names = [...page.querySelectorAll(".member.added [name=add]")].map((input) => input.value);
  if (name && !names.includes(name)) {
    const chip = document.getElementById("added-member").content.cloneNode(true);
    chip.querySelector(".initials").textContent = name.slice(0, 2).toUpperCase();
    chip.querySelector(".member-name").textContent = name;
    chip.querySelector("[name=add]").value = name;
    nameField.closest(".add-member").before(chip);
  }
  showChanges();
}

function filter({ target }) {
  const words = searchWords(target.value);
  for (const row of target.closest(".use-choices").querySelectorAll("[data-words]")) {
    row.hidden = !hasAllWords(row.dataset.words, words);
  }
}

function showChanges() {
  const changes = changedParts();
  const text = changes.length === 1 ? page.dataset.one : page.dataset.many;
  form.querySelector("[data-changes]").textContent = changes.length
    ? text.replace("{count}", changes.length).replace("{list}", changes.join(", "))
    : "";
  form.querySelector("[data-discard]").hidden = changes.length === 0;
}

function changedParts() {
  const { added, removed, on, off } = page.dataset;
  const changes = [];
  const groupName = form.elements.name;
  if (groupName.value !== groupName.defaultValue) changes.push(labelOf(groupName));
  for (const input of page.querySelectorAll(".member.added [name=add]")) changes.push(added.replace("{name}", input.value));
  for (const box of page.querySelectorAll("[data-name]")) {
    if (box.checked === box.defaultChecked) continue;
    const isGained = box.name === "remove" ? !box.checked : box.checked;
    const isSwitch = box.name === "switches";
    changes.push((isGained ? (isSwitch ? on : added) : isSwitch ? off : removed).replace("{name}", box.dataset.name));
  }
  const limit = [...page.querySelectorAll(".limit-line input")];
  const isLimitChanged = limit.some((input) =>
    input.type === "radio" ? input.checked !== input.defaultChecked : input.value !== input.defaultValue,
  );
  if (isLimitChanged) changes.push(limitText(limit));
  return changes;
}

function labelOf(input) {
  return input.labels[0].textContent.trim();
}

// The limit as it is written on the page, e.g. “Limit $5 per day for the whole group”.
function limitText(inputs) {
  const heading = document.getElementById("limit").textContent.trim();
  const [amount, ...choices] = inputs;
  if (!amount.value) return page.dataset.removed.replace("{name}", heading);
  const chosen = choices.filter((input) => input.checked).map(labelOf);
  return `${heading} $${amount.value} ${chosen.join(" ")}`;
}
