// Search within the settings of the installation, and hide what isn't changed.

import { hasAllWords, searchWords } from "./text_search.js";

const page = document.querySelector(".settings-page");
const search = page?.querySelector("[data-search]");
const onlyChanged = page?.querySelector("[data-only-changed]");

function filter() {
  const words = searchWords(search.value);
  let matchCount = 0;
  for (const section of page.querySelectorAll(".settings-section")) {
    let visibleCount = 0;
    for (const row of section.querySelectorAll(".setting")) {
      row.hidden = !hasAllWords(row.dataset.words, words) || (onlyChanged.checked && row.dataset.changed !== "yes");
      visibleCount += row.hidden ? 0 : 1;
    }
    section.hidden = visibleCount === 0;
    matchCount += visibleCount;
  }
  page.querySelector("[data-no-match]").hidden = matchCount > 0;
}

if (search) {
  search.addEventListener("input", filter);
  onlyChanged.addEventListener("change", filter);
  page.querySelector(".errorlist")?.closest(".setting")?.scrollIntoView({ block: "center" });
}
