// In a sandboxed frame: draws a diagram and returns it as SVG text. Not a module, which a page
// without an origin couldn't load.
(() => {
  const LIMITS = { maxTextSize: 20000, maxEdges: 500 };
  const FIXED = ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "htmlLabels", "fontFamily"];
  // Mermaid's own are black on black, or grey.
  const SLICES = {
    light: ["#7aa2d6", "#e3a869", "#8fbf9f", "#c995c0", "#d98c8c", "#a3afbf", "#d0c27a", "#86bcc4"],
    dark: ["#41699c", "#96642f", "#487d5a", "#7d4d76", "#914b4b", "#566273", "#7d7237", "#3d7079"],
  };
  let last = Promise.resolve();

  addEventListener("message", ({ source, data }) => {
    if (source !== parent || typeof data?.diagram !== "string") return;
    last = last.then(() => answer(data));
  });
  parent.postMessage({ isReady: true }, "*");

  async function answer({ id, diagram, isDark }) {
    try {
      parent.postMessage({ id, ...(await draw(id, diagram, isDark)) }, "*");
    } catch (error) {
      // Without the excerpt, which is below a heading of dashes.
      const summary = String(error?.message ?? error).split(/:?\n/)[0].slice(0, 300);
      parent.postMessage({ id, error: summary }, "*");
    }
    document.body.replaceChildren();
  }

  async function draw(id, diagram, isDark) {
    mermaid.initialize({
      ...LIMITS,
      startOnLoad: false,
      securityLevel: "strict",
      secure: FIXED,
      theme: isDark ? "dark" : "neutral",
      themeVariables: Object.fromEntries(SLICES[isDark ? "dark" : "light"].map((color, index) => [`pie${index + 1}`, color])),
      fontFamily: "sans-serif",
      htmlLabels: false, // HTML isn't drawn in an image everywhere
      flowchart: { htmlLabels: false },
      class: { htmlLabels: false },
    });
    await mermaid.parse(diagram);
    const { svg } = await mermaid.render(`diagram-${id}`, diagram);
    document.body.innerHTML = svg;
    const element = document.querySelector("svg");
    const { width, height } = element.viewBox.baseVal ?? {};
    const box = width && height ? { width, height } : element.getBoundingClientRect();
    element.setAttribute("width", Math.ceil(box.width));
    element.setAttribute("height", Math.ceil(box.height));
    element.style.maxWidth = "";
    const text = new XMLSerializer().serializeToString(element);
    return { svg: text, width: Math.ceil(box.width), height: Math.ceil(box.height) };
  }
})();
