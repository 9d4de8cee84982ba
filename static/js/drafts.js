// Unsent text, one draft per chat and one for a new chat.
//
// Drafts are in this browser's localStorage, not on the server: what was never sent is nobody
// else's business, and only a sent message has an agent that says whether personal data in it
// may be saved. They survive a reload, a closed tab and a restart of the browser. On a shared
// computer, signing out deletes them, and so does another user who signs in. Temporary chats
// have none. Other devices don't see them.
//
// Every tab has its own record, so that two tabs with the same chat don't overwrite each other.
// A tab without one takes over the newest; if that belongs to an open tab, it writes it again.

const PREFIX = "ashiato-draft-";
const DAYS = 30 * 24 * 60 * 60 * 1000;
const MOST = 50;
const PAUSE = 300;

const form = document.getElementById("ask");
const isTemporary = "temporary" in (document.getElementById("main")?.dataset ?? {});
const mine = `${PREFIX}${form?.dataset.user}-`;
const chat = document.getElementById("main")?.dataset.session ?? "new";
const EMPTIED = `ashiato-emptied-${chat}`;

// Without storage (disabled or full), the text lasts as long as the page.
function attempt(act) {
  try {
    return act();
  } catch {
    return undefined;
  }
}

const tab = attempt(() => (sessionStorage["ashiato-tab"] ||= Math.random().toString(36).slice(2))) ?? "tab";

const keyOf = (of) => `${mine}${of}-${tab}`;

const read = (key) => attempt(() => JSON.parse(localStorage.getItem(key))) ?? null;

const remove = (key) => attempt(() => localStorage.removeItem(key));

function drafts(prefix = PREFIX) {
  const found = attempt(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix))) ?? [];
  return found.map((key) => ({ key, ...read(key) })).sort((one, other) => (other.at ?? 0) - (one.at ?? 0));
}

let waiting;

// At most every 300 ms: what a page writes at every key is time that the key waits for.
export function saveDraftSoon(current) {
  waiting ??= setTimeout(() => saveDraft(...current()), PAUSE);
}

export function saveDraft(text, id, files = "") {
  cancelSaving();
  if (isTemporary) return;
  markEmptied(!text && !files);
  if (!text && !files) return remove(keyOf(chat));
  const record = JSON.stringify({ text, id, files, at: Date.now() });
  const write = () => localStorage.setItem(keyOf(chat), record) ?? true;
  if (attempt(write)) return;
  drafts(mine).slice(1).forEach(({ key }) => remove(key)); // full: older ones make room
  attempt(write);
}

function cancelSaving() {
  clearTimeout(waiting);
  waiting = undefined;
}

// A field that was emptied here, or sent, isn't filled with another tab's text.
function markEmptied(isEmpty) {
  attempt(() => (isEmpty ? sessionStorage.setItem(EMPTIED, "") : sessionStorage.removeItem(EMPTIED)));
}

const isEmptied = () => attempt(() => sessionStorage.getItem(EMPTIED) !== null);

// Returns this tab's draft of this chat, or the newest that another tab left.
export function takeDraft() {
  if (isTemporary) return null;
  const own = read(keyOf(chat));
  if (own?.text || own?.files) return own;
  if (isEmptied()) return null;
  const left = drafts(`${mine}${chat}-`).find((draft) => draft.text || draft.files);
  if (!left) return null;
  // A mark instead of nothing: an open tab hears of it, and knows that the user didn't sign out.
  attempt(() => localStorage.setItem(left.key, JSON.stringify({ isTaken: true, at: Date.now() })));
  saveDraft(left.text, left.id, left.files);
  return left;
}

// The first message of a chat was typed on the page for a new one.
export function forgetStarted(isSaved) {
  for (const { key, id } of drafts(`${mine}new-`)) if (id && isSaved(id)) remove(key);
}

export function forgetChat(pk) {
  for (const { key } of drafts(`${mine}${pk}-`)) remove(key);
}

export function forgetAll() {
  cancelSaving();
  for (const { key } of drafts()) remove(key);
  attempt(() => sessionStorage.clear()); // edited messages, and what else this tab remembers
}

// `current` returns the text in the composer.
export function watchDrafts(current) {
  const saveNow = () => waiting && saveDraft(...current());
  addEventListener("pagehide", saveNow);
  addEventListener("blur", saveNow); // another tab or window may take the draft over
  const old = Date.now() - DAYS;
  drafts().forEach(({ key, at, isTaken }, place) => {
    if (!key.startsWith(mine) || !(at > old) || isTaken || place >= MOST) remove(key);
  });
  addEventListener("storage", ({ key }) => {
    if (key === keyOf(chat) && read(key)?.isTaken) saveDraft(...current());
  });
  document.addEventListener("submit", ({ target }) => {
    if (target.matches?.("form.account")) forgetAll();
  });
}
