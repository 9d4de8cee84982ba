// A user who was signed out gets the sign-in page, not a fragment of it.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { pathname } = new URL(detail.xhr.responseURL || location.href);
  if (!pathname.startsWith("/login/")) return;
  detail.shouldSwap = false;
  location.reload();
});
