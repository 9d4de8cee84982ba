// Loaded before the first paint and not a module, so that the page never flashes in the wrong
// colors.
(() => {
  const root = document.documentElement;
  const choices = { theme: "auto", density: "steps" };

  root.dataset.js = "";
  tellZone();
  for (const name of Object.keys(choices)) root.dataset[name] = kept(name);
  document.addEventListener("DOMContentLoaded", check);
  addEventListener("pageshow", check);
  document.addEventListener("change", ({ target }) => {
    if (target.name in choices) keep(target.name, target.value);
  });

  // The server shows times in this zone until the user chooses another one.
  function tellZone() {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    if (zone) document.cookie = `ashiato_zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  }

  function kept(name) {
    try {
      // The console used to have a theme of its own, under Django's name.
      const before = name === "theme" ? localStorage.getItem("theme") : "";
      return localStorage.getItem(`ashiato-${name}`) || before || choices[name];
    } catch {
      return choices[name]; // storage is disabled
    }
  }

  function keep(name, value) {
    root.dataset[name] = value;
    try {
      localStorage.setItem(`ashiato-${name}`, value);
    } catch {
      // Storage is disabled or full: the choice lasts as long as the page.
    }
  }

  function check() {
    for (const name of Object.keys(choices)) {
      for (const input of document.querySelectorAll(`input[name="${name}"]`)) {
        input.checked = input.value === root.dataset[name];
      }
    }
  }
})();
