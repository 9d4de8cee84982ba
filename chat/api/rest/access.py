"""Which scope an operation needs. Who sends the request, the middleware has already found."""

from dataclasses import dataclass

from agents.access.requests import UserRequest
from agents.models import ApiKey
from chat.api.calls import Caller


class RestRequest(UserRequest):
    """A request of a program, for annotations only: Django makes plain HttpRequests."""

    api_key: ApiKey
    auth: Caller


@dataclass(frozen=True, slots=True)
class Scoped:
    """Lets a key with this scope call an operation; without a scope, any key."""

    scope: str = ""

    def __call__(self, request: RestRequest) -> Caller:
        caller = Caller(request.api_key)
        if self.scope:
            caller.require(self.scope)
        return caller


ANY = Scoped()
ASK = Scoped(ApiKey.Scope.ASK)
READ = Scoped(ApiKey.Scope.READ)
APPROVE = Scoped(ApiKey.Scope.APPROVE)
CONFIGURE = Scoped(ApiKey.Scope.CONFIGURE)
