// A plan that can be changed before it is carried out: is it another one than was shown?

const FIELDS = "textarea, select, input:not([type=hidden])";

export function markPlan(field) {
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

// A frame brings the form as it was shown first; what somebody does in it is theirs.
export function keepPlan(approval) {
  const old = document.getElementById(approval.id);
  const form = approval.querySelector(".plan-edit");
  const theirs = old?.querySelector(".plan-edit");
  if (!form || !theirs || approval.hasAttribute("data-typed")) return;
  for (const name of ["data-typed", "data-changed"]) approval.toggleAttribute(name, old.hasAttribute(name));
  form.replaceWith(theirs);
}

// What the server has to say of what was typed is what comes next.
export function goOn({ detail: { target } }) {
  const approval = document.getElementById(target.id);
  if (!approval?.matches(".for-plan[data-typed]")) return;
  const wrong = approval.querySelector(".edited li:has(.problem) :is(textarea, input:not([type=hidden]))");
  const added = approval.querySelector(".edited [data-new]:last-child :is(textarea, input:not([type=hidden]))");
  (wrong ?? added)?.focus();
}
