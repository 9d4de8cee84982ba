// Requests that change the list of chats; the response is the list as it is now.

export const sessionList = () => document.getElementById("sessions");
export const searchField = document.getElementById("session-search");
export const urls = document.getElementById("session-urls")?.dataset; // not in the console;

export function post(url, values = {}) {
  const view = sessionList().hasAttribute("data-archive") ? "archived" : "";
  return request("POST", url, { q: searchField.value, view, ...values });
}

export function actOnSessions(action, ids, values = {}) {
  const url = action === "delete" ? urls.delete : urls.act;
  return post(url, { action, ids: ids.join(","), ...values });
}

// A list to look at: "archived", or all chats.
export function showList(name) {
  searchField.value = "";
  return request("GET", urls.list, { view: name });
}

// Resolves to whether the server answered; if it didn't, the page says so.
function request(method, url, values) {
  const source = document.getElementById("session-list");
  const response = htmx.ajax(method, url, { source, target: "#sessions", swap: "outerHTML", values });
  return response.then(() => true, () => false);
}
