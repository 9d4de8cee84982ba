// The page of instructions counts their characters.

for (const text of document.querySelectorAll("[data-counted]")) {
  const count = document.createElement("p");
  count.className = "char-count";
  text.after(count);
  const update = () => (count.textContent = `${text.value.length} / ${text.maxLength}`);
  text.addEventListener("input", update);
  update();
}
