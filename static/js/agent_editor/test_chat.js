// A chat with the draft as it is in the form, saved or not; it stays beside every tab.

import { isComposing } from "../keys.js";

export function startTestChat(page, form, marks) {
  const chat = page.querySelector("[data-test]");
  const frame = chat.querySelector("[data-test-frame]");
  const question = chat.querySelector("[data-question]");
  const samples = chat.querySelector("[data-test-samples]");
  let conversation = "";

  async function askQuestion() {
    const button = chat.querySelector("[data-ask]");
    if (!question.value.trim() || button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    showStatus("busy");
    try {
      const response = await fetch(chat.dataset.try, { method: "POST", body: requestBody() });
      const result = await response.json();
      if (result.errors) showErrors(result.errors);
      else showRun(result);
    } catch {
      showStatus("lost");
    } finally {
      button.removeAttribute("aria-disabled");
    }
  }

  function requestBody() {
    const body = new FormData(form);
    body.set("question", question.value);
    body.set("conversation", conversation);
    if (page.dataset.agent) body.set("tried", page.dataset.agent);
    return body;
  }

  function showRun(result) {
    conversation = result.conversation;
    question.value = "";
    fitQuestion();
    showStatus("");
    marks.revealErrors({});
    const link = chat.querySelector("[data-trace]");
    link.href = result.trace;
    link.hidden = frame.hidden = chat.querySelector("[data-new-test]").hidden = false;
    chat.querySelector("[data-test-empty]").hidden = true;
    frame.src = result.page;
  }

  function showErrors(errors) {
    const { question: questionErrors, ...fields } = errors;
    showStatus(Object.keys(fields).length ? "wrong" : "");
    if (questionErrors) chat.querySelector("[data-said]").textContent = questionErrors.join(" ");
    if (!Object.keys(fields).length) return;
    toggleView(false);
    marks.revealErrors(fields);
  }

  function showStatus(status) {
    const element = chat.querySelector("[data-said]");
    if (element) element.textContent = status ? element.dataset[status] : "";
  }

  function restart() {
    conversation = "";
    frame.hidden = true;
    frame.removeAttribute("src");
    chat.querySelector("[data-test-empty]").hidden = false;
    chat.querySelector("[data-trace]").hidden = chat.querySelector("[data-new-test]").hidden = true;
    question?.focus();
  }

  // On a phone, the chat and the form are two views.
  function toggleView(isTest) {
    document.body.toggleAttribute("data-testing", isTest);
    const button = document.querySelector("[data-toggle-test]");
    button.setAttribute("aria-pressed", isTest);
    button.querySelector("[data-label-test]").hidden = isTest;
    button.querySelector("[data-label-edit]").hidden = !isTest;
  }

  function fitQuestion() {
    question.rows = Math.min(6, question.value.split("\n").length);
  }

  function showSamples() {
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

  function applyTheme() {
    const root = frame.contentDocument?.documentElement;
    if (root) root.dataset.theme = document.documentElement.dataset.theme ?? "auto";
  }

  document.querySelector("[data-toggle-test]").addEventListener("click", () => toggleView(!document.body.hasAttribute("data-testing")));
  chat.querySelector("[data-new-test]").addEventListener("click", restart);
  frame.addEventListener("load", applyTheme);
  new MutationObserver(applyTheme).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  if (!question) return;
  chat.querySelector("[data-ask]").addEventListener("click", askQuestion);
  question.addEventListener("input", fitQuestion);
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    askQuestion();
  });
  samples?.addEventListener("click", ({ target }) => {
    const chosen = target.closest("button");
    if (!chosen) return;
    question.value = chosen.textContent;
    askQuestion();
  });
  form.elements.example_questions.addEventListener("input", showSamples);
  showSamples();
}
