// Saves the draft by itself: what changed since the last save, as typed, valid or not.

const TYPING_MS = 700;
const CHANGE_MS = 120;
const RETRY_MS = 5000;
const POLL_MS = 20_000;
const MAX_KEEPALIVE = 60_000; // browsers refuse more in a request that outlives its page
// Which page it was: a closing page sends its last change before it hears of the one before.
const TAB = crypto.randomUUID?.() ?? String(Math.random());
const SKIPPED = new Set(["csrfmiddlewaretoken", "note", "question"]);

export function startAutosave(page, form, initial, marks) {
  const isReadOnly = "readOnly" in page.dataset;
  // Nothing of a new agent is saved yet, also not what its template filled in.
  let saved = initial.isNew && !initial.draft ? {} : formValues(form);
  let { revision, draft, savedAt } = initial;
  let queue = Promise.resolve(true);
  let timer;
  let isBusy = false;
  let isFailed = false;
  let isSent = false;
  let isConflict = false;
  const savedNote = document.querySelector("[data-saved]");

  const changes = () => changedValues(saved, formValues(form));
  const isDirty = () => Object.keys(changes()).length > 0;

  function saveLater(delay) {
    if (isReadOnly || isConflict) return;
    const publish = document.querySelector("[data-publish]");
    if (publish) publish.disabled = false; // what is typed can be published at once
    clearTimeout(timer);
    timer = setTimeout(saveNow, delay);
  }

  // One after the other: the next one is based on the revision of the last.
  function saveNow({ force = false } = {}) {
    clearTimeout(timer);
    queue = queue.then(() => flush(force));
    return queue;
  }

  async function flush(force) {
    if (isReadOnly || (isConflict && !force)) return false;
    const changed = changes();
    if (!Object.keys(changed).length && !force) return true;
    isBusy = true;
    const isDone = await send(changed, force);
    isBusy = false;
    updateSavedTime();
    return isDone;
  }

  async function send(changed, force) {
    savedNote.textContent = savedNote.dataset.saving;
    try {
      const response = await fetch(page.dataset.save, buildRequest(changed, force));
      if (response.redirected || response.status === 403) return onFailed("signedOut");
      const result = await response.json();
      if (response.status === 409) {
        isConflict = true;
        savedNote.textContent = "";
        setBanner("conflict", true).textContent = result.conflict;
        return false;
      }
      if (!response.ok) return onFailed("failed", result.problem);
      onSaved(result, changed);
      return true;
    } catch {
      return onFailed("failed");
    }
  }

  function buildRequest(changed, force) {
    const agent = Number(page.dataset.agent) || null;
    const body = JSON.stringify({ agent, draft, base: revision, tab: TAB, changes: changed, force });
    const headers = { "Content-Type": "application/json", "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
    return { method: "POST", headers, body, keepalive: body.length < MAX_KEEPALIVE };
  }

  function onSaved(result, changed) {
    const isAlone = result.revision <= revision + 1;
    saved = { ...saved, ...changed };
    adoptState(result);
    isFailed = isConflict = false;
    setBanner("failed", false);
    setBanner("conflict", false);
    if (!isAlone) showOthers(result, true);
    marks.update(result);
    page.dispatchEvent(new CustomEvent("draft:saved"));
  }

  function adoptState(result) {
    ({ revision, draft, savedAt } = result);
    form.elements._revision.value = revision;
    if (result.isNew && draft && form.elements._draft.value !== String(draft)) {
      form.elements._draft.value = draft;
      history.replaceState(null, "", `?draft=${draft}${location.hash}`);
    }
    showOthers(result, false);
    updateSavedTime();
  }

  function onFailed(reason, message) {
    isFailed = true;
    savedNote.textContent = "";
    const text = setBanner("failed", true);
    text.textContent = message ?? text.dataset[reason];
    if (reason === "failed" && !message) timer = setTimeout(saveNow, RETRY_MS);
    return false;
  }

  function showOthers(result, hasChanged) {
    if (!result.other && !hasChanged) return;
    const text = setBanner("others", true);
    text.textContent = result.other ? text.dataset.template.replace("{}", result.other) : text.dataset.own;
    if (hasChanged) text.parentElement.querySelector("[data-reload]").hidden = false;
  }

  function setBanner(name, isShown) {
    const banner = page.querySelector(`[data-banner="${name}"]`);
    banner.hidden = !isShown;
    return banner.querySelector("[data-text]");
  }

  // A request that outlives the page: closing the tab loses nothing.
  function saveOnLeave() {
    if (isReadOnly || isConflict || isSent) return;
    const changed = changes();
    if (!Object.keys(changed).length) return;
    clearTimeout(timer);
    fetch(page.dataset.save, buildRequest(changed, false)).then(async (response) => response.ok && onSaved(await response.json(), changed), () => {});
  }

  async function poll() {
    if (document.hidden || isDirty() || isBusy || !(page.dataset.agent || draft)) return;
    try {
      const query = new URLSearchParams({ agent: page.dataset.agent, draft: page.dataset.agent ? "" : draft });
      const response = await fetch(`${page.dataset.stateUrl}?${query}`);
      if (!response.ok || response.redirected) return;
      const result = await response.json();
      showOthers(result, result.revision > revision);
    } catch {
      // The next save will say so.
    }
  }

  function updateSavedTime() {
    if (!savedAt || isFailed || isConflict || isBusy) return;
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(savedAt)) / 1000));
    const [unit, count] = seconds < 60 ? ["seconds", seconds] : seconds < 3600 ? ["minutes", Math.floor(seconds / 60)] : ["hours", Math.floor(seconds / 3600)];
    const isShown = marks.state.isNew || marks.state.count;
    const text = seconds < 3 ? savedNote.dataset.now : savedNote.dataset.ago.replace("{}", savedNote.dataset[unit].replace("{}", count));
    savedNote.textContent = isShown ? text : "";
  }

  form.addEventListener("input", ({ target }) => saveLater(target.matches("textarea, input:not([type=checkbox], [type=radio])") ? TYPING_MS : CHANGE_MS));
  form.addEventListener("change", () => saveLater(CHANGE_MS));
  page.querySelector("[data-retry]").addEventListener("click", () => saveNow());
  page.querySelector("[data-keep-mine]").addEventListener("click", () => saveNow({ force: true }));
  page.querySelector("[data-use-theirs]").addEventListener("click", async () => {
    // Mine is saved first and then swapped, so that it can be brought back.
    if (!(await saveNow({ force: true }))) return;
    await post(page.dataset.undo);
    isSent = true;
    location.reload();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? saveOnLeave() : poll()));
  addEventListener("pagehide", saveOnLeave);
  addEventListener("beforeunload", (event) => {
    if (!isSent && (isFailed || isConflict) && isDirty()) event.preventDefault();
  });
  setInterval(updateSavedTime, 5000);
  setInterval(poll, POLL_MS);
  showOthers(initial, false);
  updateSavedTime();

  function post(url) {
    const body = new FormData();
    body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    body.set("agent", page.dataset.agent);
    if (!page.dataset.agent) body.set("draft", draft ?? "");
    return fetch(url, { method: "POST", body });
  }

  return {
    saveNow,
    post,
    get query() { return new URLSearchParams({ agent: page.dataset.agent, draft: page.dataset.agent ? "" : draft ?? "" }); },
    markSent: () => (isSent = true),
  };
}

function formValues(form) {
  const values = {};
  for (const { name, type } of form.elements) if (name && !name.startsWith("_") && !SKIPPED.has(name) && type !== "submit") values[name] ??= [];
  for (const [name, value] of new FormData(form)) values[name]?.push(value);
  return values;
}

function changedValues(before, after) {
  const changed = Object.entries(after).filter(([name, texts]) => JSON.stringify(texts) !== JSON.stringify(before[name]));
  return Object.fromEntries(changed);
}
