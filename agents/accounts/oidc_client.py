"""The OpenID Connect protocol, on Authlib: discovery, code flow and ID token.

Added here: responses have a deadline and a size limit, redirects aren't followed, and a token's
signature algorithm must be on our own list.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import InvalidClaimError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

TIMEOUT_SECONDS, CACHE_SECONDS, LEEWAY_SECONDS = 10.0, 600, 60
MAX_BYTES = 1_000_000
SCOPE = "openid profile email"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "Ed25519", "EdDSA"]
ESSENTIAL = ("iss", "sub", "aud", "exp", "iat", "nonce")


class ProviderUnavailable(Exception):
    """Raised when the provider can't be reached or refuses the request."""


class ProviderMisconfigured(Exception):
    """Raised when the discovery document isn't that of the issuer."""


class TokenRejected(Exception):
    """Raised when an ID token fails a check."""


class NonceMismatch(TokenRejected):
    """Raised when an ID token answers another sign-in."""


class _Registry(JWSRegistry):
    max_header_length = 8192  # some providers put certificates into the header


class _IDToken(CodeIDToken):
    def validate_amr(self) -> None:
        """Skip the check, because some providers send a string instead of a list."""


class _Http(OAuth2Client):
    """Authlib's client, with limits on what it reads."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        response = super().send(request, **{**options, "stream": True})
        try:
            response.raise_for_status()
            content = _read(response, deadline)
        finally:
            response.close()
        headers = {"content-type": response.headers.get("content-type", "")}
        return httpx2.Response(
            response.status_code, headers=headers, content=content, request=request
        )


def _read(response: httpx2.Response, deadline: float) -> bytes:
    """Read the raw body: a compressed one could be of any size and wasn't requested."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("The response is compressed.", request=response.request)
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > MAX_BYTES:
            raise httpx2.ReadError("The response is too large.", request=response.request)
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("The response took too long.", request=response.request)
    return bytes(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """This installation as a client of one provider."""

    issuer: str
    client_id: str
    client_secret: str | None
    redirect_uri: str

    def authorization_url(self, *, state: str, nonce: str, verifier: str, **more: str) -> str:
        """Return the URL for the browser; `more` are further parameters, such as `prompt`."""
        endpoint = self._endpoint("authorization_endpoint")
        with self._http() as http:
            url, _ = _request(
                lambda: http.create_authorization_url(
                    endpoint, state=state, code_verifier=verifier, nonce=nonce, **more
                )
            )
        return url

    def claims(self, code: str, *, nonce: str, verifier: str) -> dict[str, Any]:
        """Exchange the code for an ID token and return its claims once they are verified."""
        endpoint = self._endpoint("token_endpoint")
        with self._http() as http:
            token = _request(
                lambda: http.fetch_token(
                    endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                )
            )
        return self._verify_claims(token, nonce)

    def _verify_claims(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        try:
            signed = self._verify_signature(str(token.get("id_token", "")))
            params = {"nonce": nonce, "client_id": self.client_id}
            if isinstance(token.get("access_token"), str):
                params["access_token"] = token["access_token"]
            found = _IDToken(signed.claims, signed.header, self._options(), params)
            found.validate(leeway=LEEWAY_SECONDS)
        except InvalidClaimError as error:
            kind = NonceMismatch if error.claim == "nonce" else TokenRejected
            raise kind(str(error)) from error
        except (JoseError, ValueError, TypeError) as error:
            raise TokenRejected(str(error)) from error
        return dict(found)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {name: {"essential": True} for name in ESSENTIAL}
        options["iss"]["value"] = self.issuer
        options["aud"]["value"] = self.client_id
        options["azp"] = {"value": self.client_id}
        return options

    def _verify_signature(self, token: str) -> jwt.Token:
        """Check the signature; an unknown key is looked up again, because keys rotate."""
        registry = _Registry(algorithms=ALGORITHMS, strict_check_header=False)
        try:
            return jwt.decode(token, self._keys(), registry=registry)
        except InvalidKeyIdError:
            document.cache_clear()
            return jwt.decode(token, self._keys(), registry=registry)

    def _keys(self) -> KeySet:
        keys = _fetch_cached(self._endpoint("jwks_uri")).get("keys")
        if not isinstance(keys, list):
            raise TokenRejected("The provider has no keys.")
        signing = [k for k in keys if isinstance(k, dict) and k.get("use", "sig") == "sig"]
        return KeySet.import_key_set({"keys": signing})

    def _endpoint(self, name: str) -> str:
        found = _fetch_cached(get_well_known_url(self.issuer, external=True))
        url = found.get(name)
        if found.get("issuer") != self.issuer or not isinstance(url, str):
            raise ProviderMisconfigured(name)
        return url

    def _http(self) -> _Http:
        return _http(
            client_id=self.client_id,
            client_secret=self.client_secret,
            redirect_uri=self.redirect_uri,
            scope=SCOPE,
            code_challenge_method="S256",
        )


def _fetch_cached(url: str) -> dict[str, Any]:
    return document(url, int(time.time() // CACHE_SECONDS))


@lru_cache(maxsize=8)
def document(url: str, _period: int) -> dict[str, Any]:
    """Fetch a JSON document of the provider, once per period."""
    with _http() as http:
        found = _request(lambda: http.request("GET", url, withhold_token=True).json())
    return found if isinstance(found, dict) else {}


def _http(**options: Any) -> _Http:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    return _Http(timeout=TIMEOUT_SECONDS, follow_redirects=False, headers=headers, **options)


def _request(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (httpx2.HTTPError, httpx2.InvalidURL, AuthlibBaseError, ValueError) as error:
        raise ProviderUnavailable(str(error)) from error
