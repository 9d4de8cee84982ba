// Whoever has been logged out meanwhile gets the login page, not a piece of it inside of theirs.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { pathname } = new URL(detail.xhr.responseURL || location.href);
  if (!pathname.startsWith("/login/")) return;
  detail.shouldSwap = false;
  location.reload();
});
