// Forms submitted with a passkey: the server asks, the browser's key answers.

class Refused extends Error {}

for (const form of document.querySelectorAll("form.passkey")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector(".wrong");
    const button = form.querySelector("button");
    problem.hidden = true;
    button.disabled = true;
    try {
      location.assign(await (form.hasAttribute("data-makes") ? createPasskey(form) : usePasskey(form)));
    } catch (error) {
      // The browser's own messages are in English and say little.
      const isImpossible = error.name === "SecurityError" || !window.PublicKeyCredential;
      problem.textContent = error instanceof Refused ? error.message : problem.dataset[isImpossible ? "nowhere" : "away"];
      problem.hidden = false;
      button.disabled = false;
    }
  });
}

async function createPasskey(form) {
  const { publicKey } = await postJson(form, form.dataset.options, {});
  const options = {
    ...publicKey,
    challenge: decodeBase64url(publicKey.challenge),
    user: { ...publicKey.user, id: decodeBase64url(publicKey.user.id) },
    excludeCredentials: (publicKey.excludeCredentials ?? []).map(withBytes),
  };
  const key = await navigator.credentials.create({ publicKey: options });
  const { clientDataJSON, attestationObject } = key.response;
  return sendResponse(form, key, { clientDataJSON: encodeBase64url(clientDataJSON), attestationObject: encodeBase64url(attestationObject) });
}

async function usePasskey(form) {
  const { publicKey } = await postJson(form, form.dataset.options, {});
  const options = {
    ...publicKey,
    challenge: decodeBase64url(publicKey.challenge),
    allowCredentials: (publicKey.allowCredentials ?? []).map(withBytes),
  };
  const key = await navigator.credentials.get({ publicKey: options });
  const { clientDataJSON, authenticatorData, signature, userHandle } = key.response;
  return sendResponse(form, key, {
    clientDataJSON: encodeBase64url(clientDataJSON),
    authenticatorData: encodeBase64url(authenticatorData),
    signature: encodeBase64url(signature),
    userHandle: userHandle ? encodeBase64url(userHandle) : null,
  });
}

async function sendResponse(form, key, response) {
  const answer = {
    id: key.id,
    rawId: encodeBase64url(key.rawId),
    type: key.type,
    response,
    clientExtensionResults: key.getClientExtensionResults(),
  };
  const name = form.elements.namedItem("name")?.value ?? "";
  return (await postJson(form, form.dataset.done, { answer, name })).to;
}

async function postJson(form, url, body) {
  const next = form.elements.namedItem("next")?.value;
  const address = next ? `${url}?${new URLSearchParams({ next })}` : url;
  const token = form.elements.namedItem("csrfmiddlewaretoken").value;
  const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
  const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  const result = await response.json();
  if (result.wrong) throw new Refused(result.wrong);
  if (result.to && url === form.dataset.options) {
    location.assign(result.to);
    return new Promise(() => {}); // the page is being left
  }
  return result;
}

const withBytes = (key) => ({ ...key, id: decodeBase64url(key.id) });

function decodeBase64url(encoded) {
  const binary = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}

function encodeBase64url(buffer) {
  const binary = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
