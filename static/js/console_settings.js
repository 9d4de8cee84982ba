// Search within the settings of the installation, and hide what isn't changed.

const page = document.querySelector(".settings-page");
const search = page?.querySelector("[data-search]");
const onlyChanged = page?.querySelector("[data-only-changed]");

function filter() {
  const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const section of page.querySelectorAll(".settings-section")) {
    let visible = 0;
    for (const row of section.querySelectorAll(".setting")) {
      const text = row.dataset.words.toLowerCase();
      const matches = words.every((word) => text.includes(word));
      row.hidden = !matches || (onlyChanged.checked && row.dataset.changed !== "yes");
      visible += row.hidden ? 0 : 1;
    }
    section.hidden = visible === 0;
    found += visible;
  }
  page.querySelector("[data-no-match]").hidden = found > 0;
}

if (search) {
  search.addEventListener("input", filter);
  onlyChanged.addEventListener("change", filter);
  page.querySelector(".errorlist")?.closest(".setting")?.scrollIntoView({ block: "center" });
}
