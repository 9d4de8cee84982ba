// A plan on the page: redrawn while it runs, and editable before it starts.

const positions = new Map();
const FIELDS = "textarea, select, input:not([type=hidden])";

export function startPlans() {
  document.addEventListener("htmx:oobBeforeSwap", onBeforeSwap);
  document.addEventListener("htmx:oobAfterSwap", restorePositions);
  document.addEventListener("htmx:oobAfterSwap", focusNextInput);
  document.addEventListener("click", onClick);
}

// A running plan is redrawn; only the page knows its scroll position.
function onBeforeSwap({ detail: { fragment } }) {
  for (const plan of fragment.querySelectorAll(".plan")) {
    const old = document.getElementById(plan.id);
    const graph = old?.querySelector(".graph");
    if (!graph) continue;
    const link = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    positions.set(plan.id, { left: graph.scrollLeft, top: graph.scrollTop, link });
    for (const version of old.querySelectorAll(".previous-plan[open]")) {
      const same = plan.querySelector(`[data-version="${version.dataset.version}"]`);
      if (same) same.open = true;
    }
  }
}

function restorePositions() {
  for (const [id, { left, top, link }] of positions) {
    const plan = document.getElementById(id);
    plan?.querySelector(".graph")?.scrollTo(left, top);
    const links = link ? [...plan.querySelectorAll(`a[href="${CSS.escape(link)}"]`)] : [];
    links.find((link) => link.getClientRects().length)?.focus({ preventScroll: true });
  }
  positions.clear();
}

// A link from a plan to a step opens it; a trace has its own way.
function onClick({ target }) {
  const link = document.body.matches(".trace") ? null : target.closest?.('.plan a[href^="#step-"]');
  const step = link && document.getElementById(link.getAttribute("href").slice(1));
  if (step) step.querySelector("details").open = true;
}

export function markPlanChanged(field) {
  const approval = field.closest?.(".for-plan");
  if (!approval || !field.closest(".plan-edit")) return;
  const fields = [...approval.querySelectorAll(`.plan-edit :is(${FIELDS})`)];
  const changed = approval.hasAttribute("data-typed") || fields.some(isChanged);
  approval.toggleAttribute("data-changed", changed);
}

function isChanged(field) {
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  return field.tagName !== "SELECT" && field.value !== field.defaultValue;
}

// A frame has the form's initial state; what the user typed stays.
export function keepPlan(approval) {
  const old = document.getElementById(approval.id);
  const form = approval.querySelector(".plan-edit");
  const typedForm = old?.querySelector(".plan-edit");
  if (!form || !typedForm || approval.hasAttribute("data-typed")) return;
  for (const name of ["data-typed", "data-changed"]) approval.toggleAttribute(name, old.hasAttribute(name));
  form.replaceWith(typedForm);
}

// The server's messages about the input are focused next.
function focusNextInput({ detail: { target } }) {
  const approval = document.getElementById(target.id);
  if (!approval?.matches(".for-plan[data-typed]")) return;
  const wrong = approval.querySelector(".edited li:has(.problem) :is(textarea, input:not([type=hidden]))");
  const added = approval.querySelector(".edited [data-new]:last-child :is(textarea, input:not([type=hidden]))");
  (wrong ?? added)?.focus();
}
