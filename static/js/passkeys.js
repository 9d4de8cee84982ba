// Forms submitted with a passkey: the server asks, the browser's key answers.
for (const form of document.querySelectorAll("form.passkey")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    use(form);
  });
}

async function use(form) {
  const wrong = form.querySelector(".wrong");
  const button = form.querySelector("button");
  wrong.hidden = true;
  button.disabled = true;
  try {
    const to = await (form.hasAttribute("data-makes") ? made(form) : shown(form));
    location.assign(to);
  } catch (error) {
    wrong.textContent = sentence(error, wrong.dataset);
    wrong.hidden = false;
    button.disabled = false;
  }
}

class Refused extends Error {}

function sentence(error, told) {
  if (error instanceof Refused) return error.message;
  // The browser's own messages are in English and say little.
  return error.name === "SecurityError" || !window.PublicKeyCredential ? told.nowhere : told.away;
}

async function made(form) {
  const { publicKey } = await post(form, form.dataset.options, {});
  const options = {
    ...publicKey,
    challenge: bytes(publicKey.challenge),
    user: { ...publicKey.user, id: bytes(publicKey.user.id) },
    excludeCredentials: (publicKey.excludeCredentials ?? []).map(known),
  };
  const key = await navigator.credentials.create({ publicKey: options });
  const { clientDataJSON, attestationObject } = key.response;
  return finish(form, key, { clientDataJSON: text(clientDataJSON), attestationObject: text(attestationObject) });
}

async function shown(form) {
  const { publicKey } = await post(form, form.dataset.options, {});
  const options = {
    ...publicKey,
    challenge: bytes(publicKey.challenge),
    allowCredentials: (publicKey.allowCredentials ?? []).map(known),
  };
  const key = await navigator.credentials.get({ publicKey: options });
  const { clientDataJSON, authenticatorData, signature, userHandle } = key.response;
  return finish(form, key, {
    clientDataJSON: text(clientDataJSON),
    authenticatorData: text(authenticatorData),
    signature: text(signature),
    userHandle: userHandle ? text(userHandle) : null,
  });
}

async function finish(form, key, response) {
  const answer = {
    id: key.id,
    rawId: text(key.rawId),
    type: key.type,
    response,
    clientExtensionResults: key.getClientExtensionResults(),
  };
  const name = form.elements.namedItem("name")?.value ?? "";
  return (await post(form, form.dataset.done, { answer, name })).to;
}

async function post(form, url, body) {
  const next = form.elements.namedItem("next")?.value;
  const place = next ? `${url}?${new URLSearchParams({ next })}` : url;
  const token = form.elements.namedItem("csrfmiddlewaretoken").value;
  const headers = { "Content-Type": "application/json", "X-CSRFToken": token };
  const answer = await fetch(place, { method: "POST", headers, body: JSON.stringify(body) });
  const told = await answer.json();
  if (told.wrong) throw new Refused(told.wrong);
  if (told.to && url === form.dataset.options) {
    location.assign(told.to);
    return new Promise(() => {}); // the page is being left
  }
  return told;
}

const known = (key) => ({ ...key, id: bytes(key.id) });

function bytes(encoded) {
  const plain = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function text(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
