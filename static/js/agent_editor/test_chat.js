// A chat with the draft as it is in the form, saved or not; it stays beside every tab.

import { isComposing } from "../keys.js";

export function start(page, form, marks) {
  const chat = page.querySelector("[data-test]");
  const frame = chat.querySelector("[data-test-frame]");
  const question = chat.querySelector("[data-question]");
  const samples = chat.querySelector("[data-test-samples]");
  let conversation = "";

  async function ask() {
    const button = chat.querySelector("[data-ask]");
    if (!question.value.trim() || button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    say("busy");
    try {
      const answer = await fetch(chat.dataset.try, { method: "POST", body: data() });
      const told = await answer.json();
      if (told.errors) blame(told.errors);
      else show(told);
    } catch {
      say("lost");
    } finally {
      button.removeAttribute("aria-disabled");
    }
  }

  function data() {
    const body = new FormData(form);
    body.set("question", question.value);
    body.set("conversation", conversation);
    if (page.dataset.agent) body.set("tried", page.dataset.agent);
    return body;
  }

  function show(told) {
    conversation = told.conversation;
    question.value = "";
    fit();
    say("");
    marks.blame({});
    const link = chat.querySelector("[data-trace]");
    link.href = told.trace;
    link.hidden = frame.hidden = chat.querySelector("[data-new-test]").hidden = false;
    chat.querySelector("[data-test-empty]").hidden = true;
    frame.src = told.page;
  }

  function blame(errors) {
    const { question: own, ...fields } = errors;
    say(Object.keys(fields).length ? "wrong" : "");
    if (own) chat.querySelector("[data-said]").textContent = own.join(" ");
    if (!Object.keys(fields).length) return;
    toggle(false);
    marks.blame(fields);
  }

  function say(what) {
    const place = chat.querySelector("[data-said]");
    if (place) place.textContent = what ? place.dataset[what] : "";
  }

  function renew() {
    conversation = "";
    frame.hidden = true;
    frame.removeAttribute("src");
    chat.querySelector("[data-test-empty]").hidden = false;
    chat.querySelector("[data-trace]").hidden = chat.querySelector("[data-new-test]").hidden = true;
    question?.focus();
  }

  // On a phone, the chat and the form are two views.
  function toggle(isTest) {
    document.body.toggleAttribute("data-testing", isTest);
    const button = document.querySelector("[data-toggle-test]");
    button.setAttribute("aria-pressed", isTest);
    button.querySelector("[data-label-test]").hidden = isTest;
    button.querySelector("[data-label-edit]").hidden = !isTest;
  }

  function fit() {
    question.rows = Math.min(6, question.value.split("\n").length);
  }

  function suggest() {
    if (!samples) return;
    const lines = form.elements.example_questions.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, 3);
    samples.replaceChildren(
      ...lines.map((line) => {
        const item = document.createElement("li");
        item.append(Object.assign(document.createElement("button"), { type: "button", textContent: line }));
        return item;
      }),
    );
  }

  function dress() {
    const root = frame.contentDocument?.documentElement;
    if (root) root.dataset.theme = document.documentElement.dataset.theme ?? "auto";
  }

  document.querySelector("[data-toggle-test]").addEventListener("click", () => toggle(!document.body.hasAttribute("data-testing")));
  chat.querySelector("[data-new-test]").addEventListener("click", renew);
  frame.addEventListener("load", dress);
  new MutationObserver(dress).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  if (!question) return;
  chat.querySelector("[data-ask]").addEventListener("click", ask);
  question.addEventListener("input", fit);
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    ask();
  });
  samples?.addEventListener("click", ({ target }) => {
    const chosen = target.closest("button");
    if (!chosen) return;
    question.value = chosen.textContent;
    ask();
  });
  form.elements.example_questions.addEventListener("input", suggest);
  suggest();
}
