"""Types for annotations: users and translatable text."""

from typing import TYPE_CHECKING, TypeAlias

from django.contrib.auth.models import AnonymousUser, User

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise
else:
    from django.utils.functional import Promise as StrPromise

AnyUser: TypeAlias = User | AnonymousUser
# gettext_lazy returns a promise.
LazyText: TypeAlias = str | StrPromise
