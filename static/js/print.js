// Opens the browser's print dialog, which can also save as PDF.

document.querySelector("[data-print]").addEventListener("click", () => print());
