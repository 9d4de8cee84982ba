"""The OpenID Connect protocol, on Authlib: discovery, code flow, ID token and UserInfo.

Added here: responses have a deadline and a size limit, redirects aren't followed, a token's
signature algorithm must be on our own list, and endpoints must use HTTPS if the issuer does.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client, OAuthError
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import (
    ExpiredTokenError,
    InvalidClaimError,
    InvalidKeyIdError,
    JoseError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from . import oidc_errors
from .oidc_errors import (
    AlgorithmRejected,
    ClientRejected,
    ClockSkew,
    DiscoveryNotFound,
    IssuerMismatch,
    NonceMismatch,
    ProviderMisconfigured,
    ProviderUnavailable,
    TokenRejected,
    UserInfoRefused,
)

TIMEOUT_SECONDS = 10.0
CACHE_SECONDS = 600
LEEWAY_SECONDS = 60
MAX_BYTES = 1_000_000
DEFAULT_SCOPES = ("openid", "profile", "email")
GROUPS_SCOPE = "groups"
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "Ed25519", "EdDSA"]
BUSY_STATUSES = {408, 429}
TIME_CLAIMS = {"exp", "iat", "nbf"}
ESSENTIAL = ("iss", "sub", "aud", "exp", "iat", "nonce")


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
            # A refusal says why in its body; an overloaded provider doesn't.
            if not response.is_client_error or response.status_code in BUSY_STATUSES:
                response.raise_for_status()
            content = _read(response, deadline)
        finally:
            response.close()
        headers = {
            name: response.headers[name]
            for name in ("content-type", "date")
            if name in response.headers
        }
        return httpx2.Response(
            response.status_code, headers=headers, content=content, request=request
        )


def _read(response: httpx2.Response, deadline: float) -> bytes:
    """Read the raw body: a compressed one could be of any size and wasn't requested."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("The response is compressed.", request=response.request)
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > MAX_BYTES:
            raise httpx2.ReadError("The response is too large.", request=response.request)
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("The response took too long.", request=response.request)
    return bytes(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A completed sign-in at the provider; the tokens stay out of its representation."""

    claims: dict[str, Any]
    id_token: str = field(repr=False)
    access_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """This installation as a client of one provider."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    redirect_uri: str
    scopes: tuple[str, ...] = ()
    groups_claim: str = ""

    def authorization_url(
        self, *, state: str, nonce: str, verifier: str, **parameters: str
    ) -> str:
        """Return the URL for the browser; `parameters` are further ones, such as `prompt`."""
        endpoint = self.endpoint("authorization_endpoint")
        with self._http() as http:
            url, _ = _request(
                lambda: http.create_authorization_url(
                    endpoint, state=state, code_verifier=verifier, nonce=nonce, **parameters
                )
            )
        return url

    def sign_in(self, code: str, *, nonce: str, verifier: str) -> SignIn:
        """Exchange the code for tokens and return them once the ID token is verified."""
        token = self.exchange(code, verifier)
        claims = self._verify_claims(token, nonce)
        access_token = token.get("access_token")
        return SignIn(
            claims=claims,
            id_token=str(token["id_token"]),
            access_token=access_token if isinstance(access_token, str) else "",
        )

    def exchange(self, code: str, verifier: str) -> Mapping[str, Any]:
        """Return the token endpoint's response to a code."""
        endpoint = self.endpoint("token_endpoint")
        with self._http() as http:
            return _request(
                lambda: http.fetch_token(
                    endpoint,
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                )
            )

    def user_info(self, signed_in: SignIn) -> dict[str, Any]:
        """Return UserInfo's claims, or none if the provider has no such endpoint.

        They are only about this user if their subject is the ID token's.
        """
        endpoint = self.optional_endpoint("userinfo_endpoint")
        if not endpoint or not signed_in.access_token:
            return {}
        headers = {"Authorization": f"Bearer {signed_in.access_token}"}
        with _http() as http:
            response = _request(
                lambda: http.request("GET", endpoint, headers=headers, withhold_token=True)
            )
        if response.is_client_error:
            raise UserInfoRefused(f"UserInfo answered with status {response.status_code}.")
        claims = self._read_user_info(response)
        if claims.get("sub") != signed_in.claims["sub"]:
            raise TokenRejected("UserInfo is about another subject than the ID token.")
        return claims

    def _read_user_info(self, response: httpx2.Response) -> dict[str, Any]:
        """Return the claims of a JSON object or of a signed token."""
        if not response.headers.get("content-type", "").startswith("application/jwt"):
            claims = _request(response.json)
            return claims if isinstance(claims, dict) else {}
        try:
            claims = self._verify_signature(response.text).claims
        except (JoseError, ValueError, TypeError) as error:
            raise TokenRejected(f"UserInfo: {error}") from error
        audience = claims.get("aud", self.client_id)
        is_ours = self.client_id in (audience if isinstance(audience, list) else [audience])
        if claims.get("iss", self.issuer) != self.issuer or not is_ours:
            raise TokenRejected("UserInfo is signed for another client.")
        return dict(claims)

    def _verify_claims(self, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        try:
            signed = self._verify_signature(str(token.get("id_token", "")))
            params = {"nonce": nonce, "client_id": self.client_id}
            if isinstance(token.get("access_token"), str):
                params["access_token"] = token["access_token"]
            options: dict[str, Any] = {name: {"essential": True} for name in ESSENTIAL}
            options["iss"]["value"] = self.issuer
            options["aud"]["value"] = self.client_id
            options["azp"] = {"value": self.client_id}
            claims = _IDToken(signed.claims, signed.header, options, params)
            claims.validate(leeway=LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError) as error:
            raise _token_error(error)(oidc_errors.quoted(str(error))) from error
        return dict(claims)

    def _verify_signature(self, token: str) -> jwt.Token:
        """Check the signature; an unknown key is looked up again, because keys rotate."""
        registry = _Registry(algorithms=ALGORITHMS, strict_check_header=False)
        try:
            return jwt.decode(token, self.keys(), registry=registry)
        except InvalidKeyIdError:
            document.cache_clear()
            return jwt.decode(token, self.keys(), registry=registry)

    def keys(self) -> KeySet:
        """Return the provider's keys for signatures."""
        keys = _fetch_cached(self.endpoint("jwks_uri")).get("keys")
        if not isinstance(keys, list):
            raise TokenRejected("The provider has no usable keys.")
        signing_keys = [k for k in keys if isinstance(k, dict) and k.get("use", "sig") == "sig"]
        try:
            return KeySet.import_key_set({"keys": signing_keys})
        except (JoseError, ValueError, TypeError) as error:
            raise TokenRejected(f"The provider has no usable keys: {error}") from error

    @property
    def discovery_url(self) -> str:
        return str(get_well_known_url(self.issuer, external=True))

    def discovery(self) -> dict[str, Any]:
        """Return the discovery document of the issuer."""
        url = self.discovery_url
        configuration = _fetch_cached(url)
        if configuration.get("issuer") == self.issuer:
            return configuration
        document.cache_clear()  # so that a correction counts at once
        if "issuer" not in configuration:
            raise DiscoveryNotFound(f"There is no discovery document at {url}.")
        other_issuer = oidc_errors.quoted(str(configuration["issuer"]))
        raise IssuerMismatch(f"{url} names the issuer {other_issuer!r}, not {self.issuer!r}.")

    def endpoint(self, name: str) -> str:
        """Return the URL of an endpoint; raise ProviderMisconfigured if there is none."""
        if url := self.optional_endpoint(name):
            return url
        document.cache_clear()
        raise ProviderMisconfigured(f"The discovery document has no usable {name}.")

    def optional_endpoint(self, name: str) -> str:
        """Return the URL of an endpoint, or an empty string.

        Codes, tokens and the secret go there, so it must be encrypted if the issuer is.
        """
        url = self.discovery().get(name)
        try:
            split_url = urlsplit(url if isinstance(url, str) else "")
        except ValueError:
            return ""
        schemes = {"https", urlsplit(self.issuer).scheme}
        is_usable = bool(split_url.netloc) and split_url.scheme in schemes
        return split_url.geturl() if is_usable else ""

    def requested_scopes(self) -> tuple[str, ...]:
        """Return the configured scopes, or the default ones and `groups` if it has a use."""
        if self.scopes:
            return self.scopes
        supported = self.discovery().get("scopes_supported")
        is_known = isinstance(supported, list) and GROUPS_SCOPE in supported
        return (*DEFAULT_SCOPES, *([GROUPS_SCOPE] if self.groups_claim and is_known else []))

    def _http(self) -> _Http:
        auth_method = "none"
        if self.client_secret is not None:
            supported = self.discovery().get("token_endpoint_auth_methods_supported")
            is_post = isinstance(supported, list) and "client_secret_basic" not in supported
            auth_method = "client_secret_post" if is_post else "client_secret_basic"
        return _http(
            client_id=self.client_id,
            client_secret=self.client_secret,
            redirect_uri=self.redirect_uri,
            scope=" ".join(self.requested_scopes()),
            code_challenge_method="S256",
            token_endpoint_auth_method=auth_method,
        )


def _token_error(error: Exception) -> type[TokenRejected]:
    claim = error.claim if isinstance(error, InvalidClaimError) else ""
    if isinstance(error, ExpiredTokenError) or claim in TIME_CLAIMS:
        return ClockSkew
    if isinstance(error, UnsupportedAlgorithmError):
        return AlgorithmRejected
    return NonceMismatch if claim == "nonce" else TokenRejected


def _fetch_cached(url: str) -> dict[str, Any]:
    return document(url, int(time.time() // CACHE_SECONDS))


@lru_cache(maxsize=8)
def document(url: str, _period: int) -> dict[str, Any]:
    """Fetch a JSON document of the provider, once per period."""
    with _http() as http:
        response = _request(lambda: http.request("GET", url, withhold_token=True))
    if response.is_client_error:
        raise DiscoveryNotFound(f"{url} answered with status {response.status_code}.")
    try:
        content = response.json()
    except ValueError:
        raise DiscoveryNotFound(f"{url} isn't a JSON document.") from None
    return content if isinstance(content, dict) else {}


def peek(url: str) -> httpx2.Response:
    """Return the response as it is, even a redirect or an error."""
    try:
        with _http() as http:
            return http.request("GET", url, withhold_token=True)
    except httpx2.HTTPStatusError as error:
        return error.response
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ProviderUnavailable(oidc_errors.quoted(str(error))) from error


def _http(**options: Any) -> _Http:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    return _Http(timeout=TIMEOUT_SECONDS, follow_redirects=False, headers=headers, **options)


def _request(send: Callable[[], Any]) -> Any:
    try:
        return send()
    except OAuthError as error:
        raise oidc_errors.from_code(str(error.error), str(error.description or "")) from error
    except httpx2.HTTPStatusError as error:
        status = error.response.status_code
        error_class = (
            ClientRejected if status == httpx2.codes.UNAUTHORIZED else ProviderUnavailable
        )
        raise error_class(f"{error.request.url} answered with status {status}.") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, AuthlibBaseError, ValueError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise ProviderUnavailable(oidc_errors.quoted(cause)) from error
