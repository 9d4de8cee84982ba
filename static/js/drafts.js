// Unsent text, one draft per chat and one for a new chat.
//
// Drafts are in this browser's localStorage, not on the server: what was never sent is nobody
// else's business, and only a sent message has an agent that says whether personal data in it
// may be saved. They survive a reload, a closed tab and a restart of the browser. On a shared
// computer, signing out deletes them, and so does another user who signs in. Temporary chats
// and chats of users whom another site signs in have none. Other devices don't see them.
//
// Every tab has its own record, so that two tabs with the same chat don't overwrite each other.
// A tab without one takes over the newest; if that belongs to an open tab, it writes it again.

const PREFIX = "ashiato-draft-";
const MAX_AGE_MS = 30 * 24 * 60 * 60 * 1000;
const MAX_DRAFTS = 50;
const SAVE_DELAY_MS = 300;

const form = document.getElementById("ask");
const chat = document.getElementById("main")?.dataset ?? {};
const hasNoDrafts = "temporary" in chat || "noDrafts" in chat;
const userPrefix = `${PREFIX}${form?.dataset.user}-`;
const chatId = chat.session ?? "new";
// A field that was emptied here, or sent, isn't filled with another tab's text.
const EMPTIED_KEY = `ashiato-emptied-${chatId}`;
let saveTimer;

// Without storage (disabled or full), the text lasts as long as the page.
function attemptStorage(access) {
  try {
    return access();
  } catch {
    return undefined;
  }
}

const tabId = attemptStorage(() => (sessionStorage["ashiato-tab"] ||= Math.random().toString(36).slice(2))) ?? "tab";

const draftKey = `${userPrefix}${chatId}-${tabId}`;

const readDraft = (key) => attemptStorage(() => JSON.parse(localStorage.getItem(key))) ?? null;

const removeKey = (key) => attemptStorage(() => localStorage.removeItem(key));

function listDrafts(prefix = PREFIX) {
  const keys = attemptStorage(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix))) ?? [];
  return keys.map((key) => ({ key, ...readDraft(key) })).sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
}

// At most every 300 ms: what a page writes at every key is time that the key waits for.
export function saveDraftSoon(current) {
  saveTimer ??= setTimeout(() => saveDraft(...current()), SAVE_DELAY_MS);
}

export function saveDraft(text, id, files = "") {
  cancelSaving();
  if (hasNoDrafts) return;
  if (!text && !files) {
    attemptStorage(() => sessionStorage.setItem(EMPTIED_KEY, ""));
    return removeKey(draftKey);
  }
  attemptStorage(() => sessionStorage.removeItem(EMPTIED_KEY));
  const record = JSON.stringify({ text, id, files, at: Date.now() });
  const write = () => localStorage.setItem(draftKey, record) ?? true;
  if (attemptStorage(write)) return;
  listDrafts(userPrefix).slice(1).forEach(({ key }) => removeKey(key)); // full: older ones make room
  attemptStorage(write);
}

function cancelSaving() {
  clearTimeout(saveTimer);
  saveTimer = undefined;
}

// Returns this tab's draft of this chat, or the newest that another tab left.
export function takeDraft() {
  if (hasNoDrafts) return null;
  const own = readDraft(draftKey);
  if (own?.text || own?.files) return own;
  if (attemptStorage(() => sessionStorage.getItem(EMPTIED_KEY) !== null)) return null;
  const otherDraft = listDrafts(`${userPrefix}${chatId}-`).find((draft) => draft.text || draft.files);
  if (!otherDraft) return null;
  // A mark instead of nothing: an open tab hears of it, and knows that the user didn't sign out.
  attemptStorage(() => localStorage.setItem(otherDraft.key, JSON.stringify({ isTaken: true, at: Date.now() })));
  saveDraft(otherDraft.text, otherDraft.id, otherDraft.files);
  return otherDraft;
}

// The first message of a chat was typed on the page for a new one.
export function forgetStarted(isSaved) {
  for (const { key, id } of listDrafts(`${userPrefix}new-`)) if (id && isSaved(id)) removeKey(key);
}

export function forgetChat(pk) {
  for (const { key } of listDrafts(`${userPrefix}${pk}-`)) removeKey(key);
}

export function forgetAll() {
  cancelSaving();
  for (const { key } of listDrafts()) removeKey(key);
  attemptStorage(() => sessionStorage.clear()); // edited messages, and what else this tab remembers
}

// `current` returns the text in the composer.
export function watchDrafts(current) {
  const saveNow = () => saveTimer && saveDraft(...current());
  addEventListener("pagehide", saveNow);
  addEventListener("blur", saveNow); // another tab or window may take the draft over
  const old = Date.now() - MAX_AGE_MS;
  listDrafts().forEach(({ key, at, isTaken }, index) => {
    if (!key.startsWith(userPrefix) || !(at > old) || isTaken || index >= MAX_DRAFTS) removeKey(key);
  });
  addEventListener("storage", ({ key }) => {
    if (key === draftKey && readDraft(key)?.isTaken) saveDraft(...current());
  });
  document.addEventListener("submit", ({ target }) => {
    if (target.matches?.("form.account")) forgetAll();
  });
}
