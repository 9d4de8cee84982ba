// The page of a chat in another site: its preview, with what is being typed.

const preview = document.querySelector(".embed-preview");
const frame = preview.querySelector("iframe");
const form = document.getElementById("embed_form");
const origin = location.origin;

addEventListener("message", ({ data, source }) => {
  if (source !== frame.contentWindow || data?.type !== "ready") return;
  tell({ type: "start", token: preview.dataset.token });
  showTyped();
});
form.addEventListener("input", showTyped);
preview.addEventListener("change", ({ target }) => {
  if (target.name === "preview-width") frame.dataset.width = target.value;
  if (target.name !== "preview-theme") return;
  const url = new URL(frame.src);
  url.searchParams.set("theme", target.value);
  frame.src = url;
});

function showTyped() {
  const { title, greeting, examples } = form.elements;
  if (!title) return; // it can't be changed
  const lines = examples.value.split("\n").map((line) => line.trim());
  tell({
    type: "preview",
    title: title.value.trim() || preview.dataset.title,
    greeting: greeting.value.trim() || preview.dataset.greeting,
    examples: lines.filter(Boolean).slice(0, 3),
  });
}

function tell(message) {
  frame.contentWindow.postMessage(message, origin);
}
