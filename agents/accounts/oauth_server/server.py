"""Authlib's authorization server, over our rows.

Codes with PKCE, refresh tokens and device codes: no implicit and no password grant.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from hmac import compare_digest
from typing import Any

from authlib.common.urls import add_params_to_uri
from authlib.integrations.django_oauth2.authorization_server import AuthorizationServer
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import (
    ClientMixin,
    InvalidGrantError,
    InvalidRequestError,
    JsonRequest,
    OAuth2Payload,
    OAuth2Request,
    UnauthorizedClientError,
)
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7591 import (
    ClientMetadataClaims,
    ClientRegistrationEndpoint,
    InvalidClientMetadataError,
    InvalidRedirectURIError,
)
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from pydantic import ValidationError

from agents.access import api_keys, audit
from agents.db.installation import configured
from agents.models import ApiKey, AuthorizationCode, DeviceCode, OAuthApp, OAuthGrant
from agents.web.origin import origin_of

from . import apps, grants, metadata
from .user_codes import user_code_digest

CODE_FOR = timedelta(seconds=60)
DEVICE_CODE_FOR = timedelta(minutes=10)
POLL_SECONDS = 5
APP_ID_PREFIX = "app_"
APP_ID_CHARS = 24
# The characters of an error's description (RFC 6749).
DESCRIBABLE = {*map(chr, range(0x20, 0x7F))} - {'"', "\\"}


class Payload(OAuth2Payload):
    """The parameters of a request, from their one right place."""

    def __init__(self, parameters: QueryDict) -> None:
        self._values = parameters.dict()
        self._lists = defaultdict(list, parameters.lists())

    @property
    def data(self) -> dict[str, Any]:
        return self._values

    @property
    def datalist(self) -> defaultdict[str, list[Any]]:
        return self._lists


class AppRequest(OAuth2Request):
    """A request as Authlib sees it: of the query, or of the form."""

    # Authlib sets these step by step.
    payload: Any
    client: Any
    user: Any

    def __init__(self, request: HttpRequest, *, is_form: bool) -> None:
        # Whether there is TLS is a matter of the installation's origins.
        super().__init__(request.method or "", "https://localhost", headers=request.headers)
        self.payload = Payload(request.POST if is_form else request.GET)

    @property
    def form(self) -> Any:
        return self.payload.data


@dataclass(frozen=True, slots=True)
class Client(ClientMixin):
    """An app as Authlib sees it."""

    app: OAuthApp

    def get_client_id(self) -> str:
        return self.app.client_id

    def get_default_redirect_uri(self) -> str:
        return ""  # each request names its own

    def get_allowed_scope(self, scope: str | None) -> str:
        return " ".join(dict.fromkeys(scope.split() if scope else apps.DEFAULT_SCOPES))

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return apps.is_registered(redirect_uri, self.app.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        digest = self.app.secret_digest
        return bool(digest) and compare_digest(digest, api_keys.digest_of(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.app.auth_method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code" and self.check_grant_type(apps.CODE_GRANT)

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.app.grant_types


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code as Authlib sees it."""

    row: AuthorizationCode
    code_challenge_method = "S256"

    @property
    def code_challenge(self) -> str:
        return self.row.challenge

    def get_redirect_uri(self) -> str:
        return self.row.redirect_uri

    def get_scope(self) -> str:
        return " ".join(self.row.scopes)


class CodeGrant(AuthorizationCodeGrant):
    request: AppRequest
    TOKEN_ENDPOINT_AUTH_METHODS = list(apps.AUTH_METHODS)

    def save_authorization_code(self, code: str, request: AppRequest) -> None:
        AuthorizationCode.objects.create(
            app=request.client.app,
            user=request.user,
            digest=api_keys.digest_of(code),
            scopes=grants.usable_scopes(request.user, request.scope.split()),
            redirect_uri=request.payload.redirect_uri,
            challenge=request.payload.data["code_challenge"],
            expires_at=timezone.now() + CODE_FOR,
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        codes = AuthorizationCode.objects.select_related("user", "key__app", "key__user")
        row = codes.filter(digest=api_keys.digest_of(code), app=client.app).first()
        if row is None:
            return None
        if row.key is not None:
            grants.end_stolen(row.key)
        return Code(row) if row.used_at is None and row.expires_at > timezone.now() else None

    def authenticate_user(self, code: Code) -> User | None:
        """Use the code up; of two at the same moment, one is too late."""
        row = code.row
        unused = AuthorizationCode.objects.filter(pk=row.pk, used_at=None)
        if unused.update(used_at=timezone.now()):
            return row.user if row.user.is_active else None
        row.refresh_from_db()
        if row.key is not None:
            grants.end_stolen(row.key)
        return None

    def delete_authorization_code(self, code: Code) -> None:
        """Keep its row, to notice if somebody brings the code again."""


class RequiredChallenge(CodeChallenge):
    """PKCE with S256, for every app."""

    DEFAULT_CODE_CHALLENGE_METHOD = "S256"
    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]

    def validate_code_challenge(self, grant: CodeGrant, redirect_uri: str) -> None:
        super().validate_code_challenge(grant, redirect_uri)
        parameters = grant.request.payload.data
        if not parameters.get("code_challenge"):
            raise InvalidRequestError("Missing 'code_challenge'")
        if parameters.get("code_challenge_method") != "S256":
            raise InvalidRequestError("'code_challenge_method' must be S256")


class ResourceCheck:
    """RFC 8707: a token is for this installation."""

    def __call__(self, grant: CodeGrant) -> None:
        grant.register_hook("after_validate_authorization_request_payload", self.check)

    def check(self, grant: CodeGrant, redirect_uri: str) -> None:
        metadata.check_resources(grant.request.payload.datalist.get("resource", []))


@dataclass(frozen=True, slots=True)
class Refresh:
    """A refresh token as Authlib sees it."""

    grant: OAuthGrant
    family: str

    def check_client(self, client: Client) -> bool:
        return self.grant.key.app_id == client.app.pk

    def get_scope(self) -> str:
        return " ".join(self.grant.scopes)


class RefreshGrant(RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = list(apps.AUTH_METHODS)

    def authenticate_refresh_token(self, refresh_token: str) -> Refresh | None:
        grant = grants.find_grant(refresh_token)
        return Refresh(grant, refresh_token.partition(".")[0]) if grant else None

    def authenticate_user(self, refresh_token: Refresh) -> User:
        return refresh_token.grant.key.user

    def revoke_old_credential(self, refresh_token: Refresh) -> None:
        """Nothing: saving the new one replaced it."""


@dataclass(frozen=True, slots=True)
class Device:
    """A waiting device as Authlib sees it."""

    row: DeviceCode

    def get_client_id(self) -> str:
        return self.row.app.client_id

    def get_scope(self) -> str:
        return " ".join(self.row.scopes)

    def get_user_code(self) -> str:
        return self.row.user_code_digest

    def is_expired(self) -> bool:
        return self.row.is_expired


class DeviceGrant(DeviceCodeGrant):
    def query_device_credential(self, device_code: str) -> Device | None:
        rows = DeviceCode.objects.select_related("app", "user")
        row = rows.filter(digest=api_keys.digest_of(device_code)).first()
        return Device(row) if row else None

    def query_user_grant(self, user_code: str) -> tuple[User, bool] | None:
        row = DeviceCode.objects.select_related("user").get(user_code_digest=user_code)
        if row.is_allowed is None or row.user is None:
            return None
        return row.user, row.is_allowed and row.user.is_active

    def should_slow_down(self, device: Device) -> bool:
        current_time = timezone.now()
        polled_at = device.row.polled_at
        DeviceCode.objects.filter(pk=device.row.pk).update(polled_at=current_time)
        # A second less, because requests don't arrive as evenly as they are sent.
        pause = timedelta(seconds=POLL_SECONDS - 1)
        return polled_at is not None and current_time - polled_at < pause


class DeviceEndpoint(DeviceAuthorizationEndpoint):
    EXPIRES_IN = int(DEVICE_CODE_FOR.total_seconds())
    INTERVAL = POLL_SECONDS

    def authenticate_client(self, request: AppRequest) -> Client:
        client: Client = super().authenticate_client(request)
        if not client.check_grant_type(apps.DEVICE_GRANT):
            raise UnauthorizedClientError
        metadata.check_resources(request.payload.datalist.get("resource", []))
        return client

    def get_verification_uri(self) -> str:
        return f"{self.server.origin}{reverse('people:oauth_device')}"

    def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
        app = OAuthApp.objects.get(client_id=client_id)
        DeviceCode.objects.create(
            app=app,
            digest=api_keys.digest_of(data["device_code"]),
            user_code_digest=user_code_digest(data["user_code"]),
            scopes=Client(app).get_allowed_scope(scope).split(),
            expires_at=timezone.now() + DEVICE_CODE_FOR,
        )


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that is to be revoked, as Authlib sees it."""

    key: ApiKey

    def check_client(self, client: Client) -> bool:
        return self.key.app_id == client.app.pk


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = list(apps.AUTH_METHODS)

    def check_params(self, request: AppRequest, client: Client) -> None:
        """Accept any hint, because none is needed."""
        if "token" not in request.form:
            raise InvalidRequestError("Missing 'token'")

    def query_token(self, token: str, hint: str | None) -> IssuedToken | None:
        """Find an access or a refresh token."""
        digest = api_keys.digest_of(token)
        key = ApiKey.objects.filter(digest=digest, app__isnull=False).first()
        if key is None and (grant := grants.find_grant(token)):
            key = grant.key
        return IssuedToken(key) if key else None

    def revoke_token(self, token: IssuedToken, request: AppRequest) -> None:
        """End the grant: neither of its tokens works without the other."""
        if grants.revoke(ApiKey.objects.filter(pk=token.key.pk)):
            user = token.key.user
            audit.record(user, audit.APP_REVOKED, token.key.app, name=token.key.name)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The body of a registration, which was checked."""

    data: dict[str, Any]


class CheckedClaims(ClientMetadataClaims):
    def validate_redirect_uris(self) -> None:
        """Checked before, with apps' own schemes, which need no host."""


class Registration(ClientRegistrationEndpoint):
    def __init__(self, server: "Server") -> None:
        super().__init__(server, [CheckedClaims])

    def authenticate_token(self, request: JsonRequest) -> bool:
        return configured.APP_REGISTRATION.value

    def get_server_metadata(self) -> dict[str, Any]:
        return metadata.authorization_server(self.server.origin)

    def generate_client_id(self, request: JsonRequest) -> str:
        return api_keys.new_token(APP_ID_PREFIX, APP_ID_CHARS)

    def generate_client_info(self, request: Any) -> dict[str, Any]:
        """Leave out the secret of an app that can't keep one."""
        info: dict[str, Any] = super().generate_client_info(request)
        if request.payload.data["token_endpoint_auth_method"] == "none":
            del info["client_secret"], info["client_secret_expires_at"]
        return info

    def save_client(
        self, info: dict[str, Any], client_metadata: dict[str, Any], request: JsonRequest
    ) -> Client:
        app = apps.register(
            info["client_id"],
            info.get("client_secret", ""),
            apps.AppMetadata.model_validate(client_metadata),
        )
        audit.record(None, audit.APP_REGISTERED, app, name=app.name)
        return Client(app)


class Server(AuthorizationServer):
    """The server for one request, whose origin is the issuer."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(OAuthApp, ApiKey)
        self.origin = origin_of(request)
        self.scopes_supported = list(ApiKey.Scope.values)
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                access_token_generator=lambda **_about: api_keys.new_token(),
                expires_generator=grants.ACCESS_SECONDS,
            ),
        )
        self.register_grant(CodeGrant, [RequiredChallenge(), ResourceCheck()])
        self.register_grant(RefreshGrant)
        self.register_grant(DeviceGrant)
        endpoints: list[Any] = [DeviceEndpoint, Revocation, Registration]
        for endpoint in endpoints:
            self.register_endpoint(endpoint)

    def query_client(self, client_id: str) -> Client | None:
        app = apps.find(client_id)
        return Client(app) if app else None

    def create_oauth2_request(self, request: HttpRequest | AppRequest) -> AppRequest:
        if isinstance(request, AppRequest):
            return request
        is_page = request.path == reverse("people:oauth_authorize")
        return AppRequest(request, is_form=not is_page)

    def create_json_request(self, request: HttpRequest) -> JsonRequest:
        """Read a registration; raise InvalidClientMetadataError."""
        try:
            values = apps.AppMetadata.model_validate_json(request.body)
        except ValidationError as error:
            raise _describe(error) from error
        checked: Any = JsonRequest(request.method, self.origin, request.headers)
        checked.payload = Metadata({name: v for name, v in values if v})
        return checked

    def handle_response(
        self, status_code: int, payload: Any, headers: list[tuple[str, str]]
    ) -> HttpResponse:
        """Say who answers, so that an app can't be made to take another server's code for it.

        RFC 9207; also with errors.
        """
        response: HttpResponse = super().handle_response(status_code, payload, headers)
        if location := response.headers.get("Location"):
            response["Location"] = add_params_to_uri(location, {"iss": self.origin})
        return response

    def save_token(self, token: dict[str, Any], request: AppRequest) -> None:
        """Save a new or a renewed key, and add the refresh token to the answer."""
        scopes = token["scope"].split()
        if request.refresh_token is not None:
            old: Refresh = request.refresh_token
            try:
                secret = grants.refresh(old.grant, token["access_token"], scopes, old.family)
            except grants.TokenReused as error:
                raise InvalidGrantError from error
            token["refresh_token"] = secret
            return
        app = request.client.app
        if request.credential is not None:
            # Of two requests at the same moment, one is too late.
            deleted, _rows = DeviceCode.objects.filter(pk=request.credential.row.pk).delete()
            if not deleted:
                raise InvalidGrantError
        is_refreshable = apps.REFRESH_GRANT in app.grant_types
        key, refresh_token = grants.create(
            request.user, app, scopes, token["access_token"], is_refreshable=is_refreshable
        )
        if request.authorization_code is not None:
            row = request.authorization_code.row
            AuthorizationCode.objects.filter(pk=row.pk).update(key=key)
        if refresh_token:
            token["refresh_token"] = refresh_token


def _describe(error: ValidationError) -> OAuth2Error:
    """Return the first problem of a registration, in the characters that RFC 6749 allows."""
    problem = error.errors(include_input=False, include_url=False)[0]
    field = str(next(iter(problem["loc"]), ""))
    text = f"{field}: {problem['msg']}" if field else problem["msg"]
    description = "".join(c for c in text if c in DESCRIBABLE)[:300]
    is_of_uri = "redirect_uri" in text
    return (InvalidRedirectURIError if is_of_uri else InvalidClientMetadataError)(description)
