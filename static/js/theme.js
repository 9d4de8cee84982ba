// Loaded before the first paint and not a module, so that the page never flashes in the wrong
// colors.
(() => {
  const root = document.documentElement;
  const choices = { theme: "auto", steps: "folded", sidebar: "open" };

  root.dataset.js = "";
  // The server shows times in this zone until the user chooses another one.
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const secure = location.protocol === "https:" ? "; Secure" : "";
  if (timeZone) document.cookie = `ashiato_zone=${timeZone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  for (const name of Object.keys(choices)) root.dataset[name] = savedChoice(name);
  document.addEventListener("DOMContentLoaded", updateInputs);
  addEventListener("pageshow", updateInputs);
  document.addEventListener("change", ({ target }) => {
    if (!(target.name in choices)) return;
    const isOff = target.type === "checkbox" && !target.checked;
    root.dataset[target.name] = isOff ? choices[target.name] : target.value;
    try {
      localStorage.setItem(`ashiato-${target.name}`, root.dataset[target.name]);
    } catch {
      // Storage is disabled or full: the choice lasts as long as the page.
    }
  });

  function savedChoice(name) {
    try {
      // The console used to have a theme of its own, under Django's name.
      const djangoTheme = name === "theme" ? localStorage.getItem("theme") : "";
      return localStorage.getItem(`ashiato-${name}`) || djangoTheme || choices[name];
    } catch {
      return choices[name]; // storage is disabled
    }
  }

  function updateInputs() {
    for (const name of Object.keys(choices)) {
      for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
        input.checked = input.value === root.dataset[name];
      }
    }
  }
})();
