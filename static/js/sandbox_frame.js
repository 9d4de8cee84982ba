// Frames with untrusted content: no origin, no requests. Content goes in and out by messages.

const messageHandlers = new WeakMap();

addEventListener("message", ({ source, data }) => {
  // Such a frame's origin is "null", so only its window says who it is.
  for (const frame of document.querySelectorAll("iframe.sandbox-frame")) {
    if (frame.contentWindow === source && data && typeof data === "object") messageHandlers.get(frame)?.(data);
  }
});

export function createFrame(url, title, onMessage) {
  const frame = document.createElement("iframe");
  frame.className = "sandbox-frame";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.referrerPolicy = "no-referrer";
  frame.title = title;
  frame.src = url;
  messageHandlers.set(frame, onMessage);
  return frame;
}

export const sendToFrame = (frame, message) => frame.contentWindow?.postMessage(message, "*");
