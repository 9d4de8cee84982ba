// Requests that change the list of chats; the response is the list as it is now.

export const list = () => document.getElementById("sessions");
export const search = document.getElementById("session-search");
export const urls = document.getElementById("session-urls").dataset;

export function post(url, values = {}) {
  return request("POST", url, { q: search.value, view: view(), ...values });
}

export function act(action, ids, values = {}) {
  const url = action === "delete" ? urls.delete : urls.act;
  return post(url, { action, ids: ids.join(","), ...values });
}

// A list to look at: "archived", or all chats.
export function show(name) {
  search.value = "";
  return request("GET", urls.list, { view: name });
}

// Resolves to whether the server answered; if it didn't, the page says so.
function request(method, url, values) {
  const source = document.getElementById("session-list");
  const answer = htmx.ajax(method, url, { source, target: "#sessions", swap: "outerHTML", values });
  return answer.then(() => true, () => false);
}

function view() {
  return list().hasAttribute("data-archive") ? "archived" : "";
}
