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

import httpx2
from django.contrib.auth import SESSION_KEY
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
        self.user_info: dict | None = None  # what UserInfo says; it is signed if `signs` is set
        self.user_info_status, self.signs = 200, False
        self.denial: dict[str, str] = {}  # what the browser brings back instead of a code
        self.refusal = "invalid_grant"  # the token endpoint's error
        self.discovery_status = 200
        self.accepts_redirect = True  # whether our redirect URI is registered
        self.date = ""  # its clock, if it is wrong
        self.more: dict = {}  # further entries of the discovery document
        self.scopes: list[str] = []  # requested so far
        self.pause = 0.0  # seconds between the bytes of a response

    def renew(self) -> None:
        self.key = RSAKey.generate_key(2048)
        self.kid = "second"

    def authorize(self, asked: dict[str, str]) -> str:
        """Return where the browser is redirected to."""
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        self.scopes.append(asked["scope"])
        told = {**(self.denial or {"code": code}), "state": asked["state"]}
        return f"{asked['redirect_uri']}?{urlencode(told)}"

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
        return self.encode(self.change(claims))

    def encode(self, claims: dict) -> str:
        header = {"kid": self.kid, "alg": self.algorithm}
        return jwt.encode(header, claims, self.key, [self.algorithm])

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
            **({"userinfo_endpoint": f"{self.url}/me"} if self.user_info is not None else {}),
            **self.more,
        }


def use(settings, **values):
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=values)


def sent_back(client, onward="/traces/"):
    """Return the URL with which the browser returns from the service."""
    away = client.get("/login/oidc/", {"next": onward})
    return httpx2.get(away.headers["Location"]).headers["Location"]


def signed_in(client, **options):
    return client.get(sent_back(client, **options))


def is_in(client):
    return SESSION_KEY in client.session


@contextmanager
def serve_provider():
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            if place.path == "/authorize" and not provider.accepts_redirect:
                self._send(b"<h1>Unknown redirect URI</h1>", "text/html", 400)
            elif place.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(place.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif place.path == "/me":
                self._tell_user_info()
            else:
                is_key = place.path == "/keys"
                told = provider.keys() if is_key else provider.discovery()
                self._say(told, provider.discovery_status)

        def _tell_user_info(self) -> None:
            is_known = self.headers.get("Authorization") == "Bearer x"
            status = provider.user_info_status if is_known else 401
            if not provider.signs:
                self._say(provider.user_info, status)
                return
            self._send(provider.encode(provider.user_info).encode(), "application/jwt", status)

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
            self._say(told or {"error": provider.refusal}, 200 if told else 400)

        def _say(self, told, status: int = 200) -> None:
            self._send(json.dumps(told).encode(), "application/json", status)

        def _send(self, body: bytes, kind: str, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
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

        def date_time_string(self, timestamp=None) -> str:
            return provider.date or super().date_time_string(timestamp)

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
