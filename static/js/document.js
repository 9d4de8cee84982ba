// The document viewer: goes to the linked passage, and plays recordings from a clip.

const place = document.getElementById("place");
const player = document.getElementById("player");

// Screen readers start at the passage, too.
if (place && location.hash === "#place") place.focus({ preventScroll: true });

document.addEventListener("click", ({ target }) => {
  const clip = target.closest?.("[data-seconds]");
  if (!clip || !player) return;
  player.currentTime = Number(clip.dataset.seconds);
  player.play();
});

// A narrow page has room for the text only.
if (matchMedia("(max-width: 52rem)").matches) document.querySelector("details.document-index")?.removeAttribute("open");
document.querySelector(".document-index [aria-current]")?.scrollIntoView({ block: "nearest" });
