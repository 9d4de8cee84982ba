// Puts a chat into a page of another site:
// <script src="https://ashiato.example.com/embed.js" data-embed="KEY" async></script>
//
// It runs in the other site, so it has no modules and touches nothing there but its own elements:
// a button and a panel in a shadow root, or a frame in the element that `data-target` names.
(() => {
  const script = document.currentScript;
  const settings = script.dataset;
  const key = settings.embed;
  const origin = new URL(script.src).origin;
  const PHONE = matchMedia("(max-width: 30rem)");
  const DARK = matchMedia("(prefers-color-scheme: dark)");
  const OPEN_KEY = `ashiato-embed-open-${key}`;
  const TEXTS = {
    en: { open: "Open chat", close: "Close chat", chat: "Chat" },
    ja: { open: "チャットを開く", close: "チャットを閉じる", chat: "チャット" },
  };
  const STYLE = `
    :host { all: initial; }
    button {
      position: fixed; inset-block-end: calc(1.25rem + env(safe-area-inset-bottom)); inset-inline: var(--inset); z-index: 2147483000;
      display: grid; place-items: center; box-sizing: border-box; width: 3.5rem; height: 3.5rem; padding: 0; border: 0; border-radius: 99rem;
      background: var(--color, #1f1e1b); color: var(--icon, #fff); box-shadow: 0 2px 6px #0003, 0 8px 24px -6px #0005; cursor: pointer;
    }
    :host([data-theme="dark"]) button { background: var(--color, #f1f0ec); color: var(--icon, #1f1e1b); }
    button:focus-visible { outline: 3px solid #4c8dff; outline-offset: 3px; }
    button:hover { filter: brightness(1.12); }
    svg { width: 1.625rem; height: 1.625rem; fill: none; stroke: currentcolor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; }
    [aria-expanded="true"] .is-closed, [aria-expanded="false"] .is-open { display: none; }
    .news { position: absolute; inset: 0.125rem 0.125rem auto auto; width: 0.875rem; height: 0.875rem; border: 2px solid #fff; border-radius: 99rem; background: #d92d20; }
    .panel {
      position: fixed; inset-block: auto calc(5.5rem + env(safe-area-inset-bottom)); inset-inline: var(--inset); z-index: 2147483000;
      box-sizing: border-box; width: min(25rem, 100vw - 2.5rem); height: min(42rem, 100dvh - 7.5rem); overflow: hidden;
      border: 1px solid #8884; border-radius: 1rem; background: #fcfbf9; box-shadow: 0 4px 12px #0002, 0 16px 48px -8px #0004;
    }
    :host([data-theme="dark"]) .panel { background: #171614; }
    .panel[hidden], .news[hidden] { display: none; }
    iframe { display: block; width: 100%; height: 100%; border: 0; }
    @media (max-width: 30rem) {
      .panel {
        inset: 0; width: auto; height: 100dvh; border: 0; border-radius: 0;
        padding: env(safe-area-inset-top) env(safe-area-inset-right) env(safe-area-inset-bottom) env(safe-area-inset-left);
      }
      button[aria-expanded="true"][data-ready] { display: none; }
    }
    @media (prefers-reduced-motion: no-preference) {
      .panel { animation: appear 160ms ease-out; }
      @keyframes appear { from { opacity: 0; translate: 0 0.5rem; } }
    }`;
  const ICONS = {
    "is-closed": "M4 6.5A2.5 2.5 0 0 1 6.5 4h11A2.5 2.5 0 0 1 20 6.5v7a2.5 2.5 0 0 1-2.5 2.5H11l-4.5 4v-4A2.5 2.5 0 0 1 4 13.5Z",
    "is-open": "m6 9.5 6 6 6-6",
  };
  const language = pickLanguage();
  const texts = TEXTS[language] ?? TEXTS.en;
  let provider = settings.userToken ?? ""; // a token, or a function that returns one
  let lastToken = "";
  let frame;
  let isReady = false;
  let waiting = []; // messages for a frame that isn't ready
  let button;
  let panel;
  let news;
  let scrolling = null; // what the site had, while the panel covers it

  const api = { open, close, identify, ask };

  start();
  window.Ashiato ??= api;

  function start() {
    addEventListener("message", onMessage);
    DARK.addEventListener("change", sendTheme);
    new MutationObserver(sendTheme).observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });
    const target = settings.target;
    if (target !== undefined) whenParsed(() => showInline(document.querySelector(target)));
    else whenParsed(showButton);
  }

  function whenParsed(callback) {
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", callback, { once: true });
    else callback();
  }

  function showInline(target) {
    if (!target) return console.error(`Ashiato: no element matches data-target="${settings.target}".`);
    createFrame();
    Object.assign(frame.style, { display: "block", width: "100%", height: "100%", minHeight: "min(30rem, 100dvh)", border: "0" });
    target.append(frame);
  }

  function showButton() {
    const host = document.createElement("div");
    const root = host.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet(); // no style element: the site's policy may forbid it
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    host.style.setProperty("--inset", settings.side === "left" ? "1.25rem auto" : "auto 1.25rem");
    if (settings.color) host.style.setProperty("--color", settings.color);
    if (settings.color) host.style.setProperty("--icon", settings.iconColor ?? "#fff");
    panel = create("div", { role: "dialog", "aria-label": settings.label ?? texts.chat, id: "panel", class: "panel" });
    panel.hidden = true;
    button = create("button", { type: "button", "aria-label": settings.label ?? texts.open, "aria-expanded": "false", "aria-controls": "panel" });
    for (const [name, path] of Object.entries(ICONS)) button.append(icon(name, path));
    news = create("span", { class: "news" });
    news.hidden = true;
    button.append(news);
    button.addEventListener("click", () => (panel.hidden ? open() : close()));
    root.addEventListener("keydown", onKeydown);
    root.append(panel, button);
    document.body.append(host);
    for (const kind of ["resize", "scroll"]) visualViewport.addEventListener(kind, fitToKeyboard);
    sendTheme();
    if (readOpen() && !PHONE.matches) open({ takesFocus: false });
  }

  function onKeydown(event) {
    if (event.key === "Escape" && !isComposing(event)) close();
  }

  // An input method uses Escape, too.
  function isComposing(event) {
    return event.isComposing;
  }

  function create(name, attributes) {
    const element = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
    return element;
  }

  function icon(name, path) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("class", name);
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("d", path);
    svg.append(line);
    return svg;
  }

  function createFrame() {
    const query = new URLSearchParams({ host: location.origin, theme: currentTheme(), language });
    if (panel) query.set("over", "1");
    frame = create("iframe", { title: settings.label ?? texts.chat, src: `${origin}/embed/${encodeURIComponent(key)}/?${query}`, allow: "clipboard-write" });
    frame.style.colorScheme = currentTheme();
  }

  // The panel

  function open({ takesFocus = true } = {}) {
    if (!button) return takesFocus && send({ type: "focus" });
    if (!frame) {
      createFrame();
      panel.append(frame);
    }
    panel.hidden = false;
    news.hidden = true;
    button.setAttribute("aria-expanded", "true");
    button.setAttribute("aria-label", texts.close);
    writeOpen("1");
    fitToKeyboard();
    if (takesFocus) send({ type: "focus" });
  }

  function close() {
    if (!button || panel.hidden) return;
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-label", settings.label ?? texts.open);
    writeOpen("");
    fitToKeyboard();
    button.focus();
  }

  // On a phone the panel covers the page, and the keyboard must not cover the panel.
  function fitToKeyboard() {
    const isPhone = PHONE.matches && !panel.hidden;
    const { style } = document.documentElement;
    if (isPhone && scrolling === null) {
      scrolling = style.overflow;
      style.overflow = "hidden";
    } else if (!isPhone && scrolling !== null) {
      style.overflow = scrolling;
      scrolling = null;
    }
    panel.style.height = isPhone ? `${visualViewport.height}px` : "";
    panel.style.top = isPhone ? `${visualViewport.offsetTop}px` : "";
  }

  // The frame

  async function onMessage({ data, source, origin: sender }) {
    if (!frame || source !== frame.contentWindow || sender !== origin || typeof data?.type !== "string") return;
    if (data.type === "ready") {
      isReady = true;
      button?.setAttribute("data-ready", ""); // the frame has a button that closes it
      lastToken = await currentToken();
      send({ type: "start", token: lastToken }, { first: true });
    } else if (data.type === "close") close();
    else if (data.type === "answered" && panel?.hidden) news.hidden = false;
    else if (data.type === "token") await renewToken();
  }

  // Tells the site that its token has expired, unless it gave a function that returns new ones.
  async function renewToken() {
    if (typeof provider === "function") return identify(provider);
    document.dispatchEvent(new CustomEvent("ashiato:token-expired", { detail: { identify } }));
  }

  function send(message, { first = false } = {}) {
    if (!frame) return;
    if (!isReady) return waiting.push(message);
    const messages = first ? [message, ...waiting] : [message];
    if (first) waiting = [];
    for (const each of messages) frame.contentWindow.postMessage(each, origin);
  }

  async function currentToken() {
    try {
      return (typeof provider === "function" ? await provider() : provider) || "";
    } catch (error) {
      console.error("Ashiato: no token for the user.", error);
      return "";
    }
  }

  async function identify(tokenOrFunction) {
    provider = tokenOrFunction ?? "";
    if (!isReady) return;
    lastToken = await currentToken();
    send({ type: "identify", token: lastToken });
  }

  function ask(text) {
    open();
    send({ type: "ask", text: String(text) });
  }

  // What it takes over from the site

  function currentTheme() {
    if (["light", "dark"].includes(settings.theme)) return settings.theme;
    const scheme = settings.theme === "auto" ? "light dark" : getComputedStyle(document.documentElement).colorScheme;
    if (/dark/.test(scheme) && /light/.test(scheme)) return DARK.matches ? "dark" : "light";
    return /dark/.test(scheme) ? "dark" : "light";
  }

  function sendTheme() {
    const theme = currentTheme();
    if (frame) frame.style.colorScheme = theme;
    button?.getRootNode().host.setAttribute("data-theme", theme);
    send({ type: "theme", theme });
  }

  function pickLanguage() {
    const wanted = settings.language || document.documentElement.lang || navigator.language || "";
    return wanted.slice(0, 2).toLowerCase();
  }

  function readOpen() {
    try {
      return sessionStorage.getItem(OPEN_KEY);
    } catch {
      return ""; // storage is disabled
    }
  }

  function writeOpen(value) {
    try {
      sessionStorage.setItem(OPEN_KEY, value);
    } catch {
      // See above.
    }
  }
})();
