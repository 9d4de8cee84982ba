"""A small real OpenID provider: discovery, keys, automatic consent, tokens."""

import base64
import json
import secrets
import threading
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "ashiato", "a secret between the two"


class Provider:
    """Signs everyone in as `person`; `change` can corrupt what is signed."""

    def __init__(self) -> None:
        self.first = RSAKey.generate_key(2048)
        self.codes: dict[str, dict[str, str]] = {}
        self.reset()

    def reset(self) -> None:
        """Behave well again, with the first key."""
        vars(self).pop("keys", None)
        self.key, self.kid, self.algorithm = self.first, "first", "RS256"
        self.person = {"sub": "42", "preferred_username": "ada"}
        self.change = lambda claims: claims
        self.is_public = False  # whether its client has no secret
        self.encoding = self.elsewhere = ""
        self.pause = 0.0  # seconds between the bytes of a response

    def renew(self) -> None:
        self.key = RSAKey.generate_key(2048)
        self.kid = "second"

    def authorize(self, asked: dict[str, str]) -> str:
        """Return where the browser is redirected to."""
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def tokens(self, given: dict[str, str], authorization: str) -> dict[str, str] | None:
        asked = self.codes.pop(given["code"], None)
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        is_known = authorization == f"Basic {known}"
        if self.is_public:
            is_known = not authorization and given["client_id"] == CLIENT
        if asked is None or not is_known:
            return None
        digest = sha256(given["code_verifier"].encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_same = given["redirect_uri"] == asked["redirect_uri"]
        if proof != asked["code_challenge"] or not is_same:
            return None
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.signed(asked)}

    def signed(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], **self.person}
        header = {"kid": self.kid, "alg": self.algorithm}
        allowed = [self.algorithm]
        return jwt.encode(header, self.change(claims), self.key, allowed)

    def public(self) -> dict[str, str]:
        public = self.key.as_dict(private=False)
        return {**public, "kid": self.kid, "alg": self.algorithm, "use": "sig"}

    def keys(self) -> dict[str, list[dict[str, str]]]:
        return {"keys": [self.public()]}

    def discovery(self) -> dict[str, str]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }


@contextmanager
def serve_provider():
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(place.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            else:
                is_key = place.path == "/keys"
                self._say(provider.keys() if is_key else provider.discovery())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            given = {name: values[0] for name, values in parse_qs(body).items()}
            if provider.elsewhere:
                self.send_response(307)
                self.send_header("Location", provider.elsewhere)
                provider.elsewhere = ""
                self.end_headers()
                return
            told = provider.tokens(given, self.headers.get("Authorization", ""))
            self._say(told or {"error": "invalid_grant"}, 200 if told else 400)

        def _say(self, told, status: int = 200) -> None:
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if provider.encoding:
                self.send_header("Content-Encoding", provider.encoding)
            self.end_headers()
            with suppress(ConnectionError):  # the client may have given up
                self._write(body)

        def _write(self, body: bytes) -> None:
            if not provider.pause:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                time.sleep(provider.pause)

        def log_message(self, *about) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
