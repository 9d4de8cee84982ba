// Saves the draft by itself: what changed since the last save, as typed, valid or not.

const TYPING_MS = 700;
const CHANGE_MS = 120;
const RETRY_MS = 5000;
const POLL_MS = 20_000;
const MAX_KEEPALIVE = 60_000; // browsers refuse more in a request that outlives its page
// Which page it was: a closing page sends its last change before it hears of the one before.
const TAB = crypto.randomUUID?.() ?? String(Math.random());
const SKIPPED = new Set(["csrfmiddlewaretoken", "note", "question"]);

export function start(page, form, first, marks) {
  const isReadOnly = "readOnly" in page.dataset;
  // Nothing of a new agent is saved yet, also not what its template filled in.
  let saved = first.isNew && !first.draft ? {} : snapshot(form);
  let { revision, draft, savedAt } = first;
  let queue = Promise.resolve(true);
  let timer;
  let isBusy = false;
  let isFailed = false;
  let isSent = false;
  let isConflict = false;
  const place = document.querySelector("[data-saved]");

  const changes = () => difference(saved, snapshot(form));
  const isDirty = () => Object.keys(changes()).length > 0;

  function later(delay) {
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
    const isGood = await send(changed, force);
    isBusy = false;
    age();
    return isGood;
  }

  async function send(changed, force) {
    place.textContent = place.dataset.saving;
    try {
      const answer = await fetch(page.dataset.save, ask(changed, force));
      if (answer.redirected || answer.status === 403) return failed("signedOut");
      const told = await answer.json();
      if (answer.status === 409) return conflict(told);
      if (!answer.ok) return failed("failed", told.problem);
      succeeded(told, changed);
      return true;
    } catch {
      return failed("failed");
    }
  }

  function ask(changed, force) {
    const agent = Number(page.dataset.agent) || null;
    const body = JSON.stringify({ agent, draft, base: revision, tab: TAB, changes: changed, force });
    const headers = { "Content-Type": "application/json", "X-CSRFToken": form.elements.csrfmiddlewaretoken.value };
    return { method: "POST", headers, body, keepalive: body.length < MAX_KEEPALIVE };
  }

  function succeeded(told, changed) {
    const isAlone = told.revision <= revision + 1;
    saved = { ...saved, ...changed };
    follow(told);
    isFailed = isConflict = false;
    banner("failed", false);
    banner("conflict", false);
    if (!isAlone) others(told, true);
    marks.update(told);
    page.dispatchEvent(new CustomEvent("draft:saved"));
  }

  function follow(told) {
    ({ revision, draft, savedAt } = told);
    form.elements._revision.value = revision;
    if (told.isNew && draft && form.elements._draft.value !== String(draft)) {
      form.elements._draft.value = draft;
      history.replaceState(null, "", `?draft=${draft}${location.hash}`);
    }
    others(told, false);
    age();
  }

  function failed(why, sentence) {
    isFailed = true;
    place.textContent = "";
    const text = banner("failed", true);
    text.textContent = sentence ?? text.dataset[why];
    if (why === "failed" && !sentence) timer = setTimeout(saveNow, RETRY_MS);
    return false;
  }

  function conflict(told) {
    isConflict = true;
    place.textContent = "";
    banner("conflict", true).textContent = told.conflict;
    return false;
  }

  function others(told, hasChanged) {
    if (!told.other && !hasChanged) return;
    const text = banner("others", true);
    text.textContent = told.other ? text.dataset.template.replace("{}", told.other) : text.dataset.own;
    if (hasChanged) text.parentElement.querySelector("[data-reload]").hidden = false;
  }

  function banner(name, isShown) {
    const found = page.querySelector(`[data-banner="${name}"]`);
    found.hidden = !isShown;
    return found.querySelector("[data-text]");
  }

  // A request that outlives the page: closing the tab loses nothing.
  function leave() {
    if (isReadOnly || isConflict || isSent) return;
    const changed = changes();
    if (!Object.keys(changed).length) return;
    clearTimeout(timer);
    fetch(page.dataset.save, ask(changed, false)).then(async (answer) => answer.ok && succeeded(await answer.json(), changed), () => {});
  }

  async function poll() {
    if (document.hidden || isDirty() || isBusy || !(page.dataset.agent || draft)) return;
    try {
      const query = new URLSearchParams({ agent: page.dataset.agent, draft: page.dataset.agent ? "" : draft });
      const answer = await fetch(`${page.dataset.stateUrl}?${query}`);
      if (!answer.ok || answer.redirected) return;
      const told = await answer.json();
      if (told.revision > revision) others(told, true);
      else others(told, false);
    } catch {
      // The next save will say so.
    }
  }

  function age() {
    if (!savedAt || isFailed || isConflict || isBusy) return;
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(savedAt)) / 1000));
    const [unit, count] = seconds < 60 ? ["seconds", seconds] : seconds < 3600 ? ["minutes", Math.floor(seconds / 60)] : ["hours", Math.floor(seconds / 3600)];
    const isShown = marks.state.isNew || marks.state.count;
    const text = seconds < 3 ? place.dataset.now : place.dataset.ago.replace("{}", place.dataset[unit].replace("{}", count));
    place.textContent = isShown ? text : "";
  }

  form.addEventListener("input", ({ target }) => later(target.matches("textarea, input:not([type=checkbox], [type=radio])") ? TYPING_MS : CHANGE_MS));
  form.addEventListener("change", () => later(CHANGE_MS));
  page.querySelector("[data-retry]").addEventListener("click", () => saveNow());
  page.querySelector("[data-keep-mine]").addEventListener("click", () => saveNow({ force: true }));
  page.querySelector("[data-use-theirs]").addEventListener("click", async () => {
    // Mine is saved first and then swapped, so that it can be brought back.
    if (!(await saveNow({ force: true }))) return;
    await post(page.dataset.undo);
    isSent = true;
    location.reload();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : poll()));
  addEventListener("pagehide", leave);
  addEventListener("beforeunload", (event) => {
    if (!isSent && (isFailed || isConflict) && isDirty()) event.preventDefault();
  });
  setInterval(age, 5000);
  setInterval(poll, POLL_MS);
  others(first, false);
  age();

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

function snapshot(form) {
  const found = {};
  for (const { name, type } of form.elements) if (name && !name.startsWith("_") && !SKIPPED.has(name) && type !== "submit") found[name] ??= [];
  for (const [name, value] of new FormData(form)) found[name]?.push(value);
  return found;
}

function difference(before, after) {
  const changed = Object.entries(after).filter(([name, texts]) => JSON.stringify(texts) !== JSON.stringify(before[name]));
  return Object.fromEntries(changed);
}
