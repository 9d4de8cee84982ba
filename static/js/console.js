// What every page of the console has: closable messages, and a warning before unsaved changes are
// lost.

document.addEventListener("click", onClick);
document.querySelectorAll("form[data-guard]").forEach(warnBeforeLeaving);
document.querySelectorAll(":is(.tabs, .segmented) > [aria-current]").forEach(scrollToTab);

// On a phone, the current tab may be beyond the edge; the page itself must not move.
function scrollToTab(tab) {
  const bar = tab.parentElement;
  bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
}

function onClick({ target }) {
  target.closest?.(".messagelist [data-dismiss]")?.closest("li").remove();
}

// A form that comes back with errors has been changed as well.
function warnBeforeLeaving(form) {
  const initialValues = formValues(form);
  const isRejected = Boolean(form.querySelector(".errornote, .errorlist"));
  let isSent = false;
  form.addEventListener("submit", () => (isSent = true));
  addEventListener("pageshow", () => (isSent = false));
  addEventListener("beforeunload", (event) => {
    if (!isSent && (isRejected || formValues(form) !== initialValues)) event.preventDefault();
  });
}

function formValues(form) {
  const pairs = [...new FormData(form)].map(([name, value]) => [name, value.name ?? value]);
  return JSON.stringify(pairs);
}
