"""Every route of the product, how to call it, and who has access.

Others get a 404, or a 403 if they may know of it. Without an account every route but the open
ones redirects to the sign-in page.
"""

from dataclasses import dataclass

from tests.access.world import ROLES

NOBODY = frozenset[str]()
OWNER = frozenset({"owner"})
WRITERS = OWNER | {"writer"}
READER = frozenset({"reader"})
GUESTS = READER | {"writer"}
MEMBERS = WRITERS | {"reader"}
REVIEWERS = frozenset({"reviewer", "root"})
READERS = MEMBERS | REVIEWERS
ALL_REVIEWERS = REVIEWERS | {"scoped"}
ROOT = frozenset({"root"})
ACCOUNTS = frozenset(ROLES) - {"nobody"}
EVERYBODY = frozenset(ROLES)


@dataclass(frozen=True)
class Route:
    method: str
    allowed: frozenset[str]
    forbidden: frozenset[str] = NOBODY
    redirected: frozenset[str] = frozenset({"nobody"})  # to the sign-in page


def read(allowed: frozenset[str], forbidden: frozenset[str] = NOBODY) -> Route:
    return Route("GET", allowed, forbidden)


def change(allowed: frozenset[str], forbidden: frozenset[str] = NOBODY) -> Route:
    return Route("POST", allowed, forbidden)


ROUTES = {
    "": read(ACCOUNTS),
    "embed.js": read(EVERYBODY),
    "embed/<str:public_id>/": read(EVERYBODY),  # what it shows depends on its socket
    "chat/": change(ACCOUNTS),
    "chat/sessions/": read(ACCOUNTS),
    "chat/choices/": read(ACCOUNTS),
    "chat/default-agent/": change(ACCOUNTS),
    "chat/limits/": read(ACCOUNTS),
    "chat/search/": read(ACCOUNTS),
    "chat/selected/": change(ACCOUNTS),  # others' chats are left out
    "chat/selected/delete/": change(ACCOUNTS),  # others' chats are left out
    "chat/folders/": read(ACCOUNTS),
    "chat/folders/<int:pk>/": change(OWNER),
    "chat/folders/<int:pk>/delete/": change(OWNER),
    "chat/files/": read(ACCOUNTS),  # others' files are left out
    "chat/files/<int:pk>/": read(OWNER),  # not sent yet
    "chat/files/<int:pk>/delete/": change(OWNER),
    "chat/files/<int:pk>/retry/": change(OWNER),
    "chat/files/<int:pk>/reading/": change(OWNER),
    "chat/files/<int:pk>/dictate/": change(OWNER),
    "chat/<int:pk>/": read(MEMBERS),
    "chat/<int:pk>/messages/": change(MEMBERS),  # readers get an error
    "chat/<int:pk>/messages/<int:message>/edit/": read(OWNER),  # the author's
    "chat/<int:pk>/messages/<int:message>/regenerate/": change(WRITERS),
    "chat/<int:pk>/messages/<int:message>/show/": change(MEMBERS),
    "chat/<int:pk>/messages/<int:message>/delete/": read(OWNER),
    "chat/<int:pk>/messages/<int:message>/text/": read(MEMBERS),
    "chat/<int:pk>/stop/": change(WRITERS),
    "chat/<int:pk>/queue/<int:message>/now/": change(WRITERS),
    "chat/<int:pk>/queue/<int:message>/withdraw/": change(WRITERS),
    "chat/<int:pk>/rename/": change(OWNER),
    "chat/<int:pk>/delete/": change(OWNER),
    "chat/<int:pk>/keep/": change(OWNER),
    "chat/<int:pk>/people/": read(MEMBERS),
    "chat/<int:pk>/people/<int:user>/remove/": change(OWNER),
    "chat/<int:pk>/people/suggestions/": read(NOBODY),  # unless suggestions are enabled
    "chat/<int:pk>/leave/": change(GUESTS),
    "chat/<int:pk>/links/": change(OWNER),
    "chat/<int:pk>/links/<int:link>/withdraw/": change(OWNER),
    "chat/<int:pk>/public/": change(OWNER),
    "chat/<int:pk>/public/<int:link>/update/": change(OWNER),
    "chat/<int:pk>/public/<int:link>/revoke/": change(OWNER),
    "chat/<int:pk>/export/<slug:ending>/": read(MEMBERS),
    "chat/<int:pk>/print/": read(MEMBERS),
    "chat/export/": change(NOBODY),  # without ids there is nothing to export
    "chats/import/": read(ACCOUNTS),
    "chats/import/<int:pk>/": read(OWNER),
    "chats/import/<int:pk>/start/": change(OWNER),
    "chats/import/<int:pk>/cancel/": change(OWNER),
    "public/<str:token>/": read(EVERYBODY),
    "prompts/": read(ACCOUNTS),
    "prompts/new/": read(ACCOUNTS),
    "prompts/new/from-text/": change(ACCOUNTS),
    "prompts/completions/": read(ACCOUNTS),
    # The reader is in the group it is shared with; an administrator tidies up what is shared.
    "prompts/<int:pk>/": read(OWNER | ROOT),
    "prompts/<int:pk>/parts/": read(OWNER | ROOT | {"reader"}),
    "prompts/<int:pk>/duplicate/": change(OWNER | ROOT | {"reader"}),
    "prompts/<int:pk>/delete/": change(OWNER | ROOT),
    "join/<str:token>/": read(ACCOUNTS),
    "chat/news/": read(ACCOUNTS),
    "palette/": read(ACCOUNTS),
    "projects/": read(ACCOUNTS),
    "projects/new/": read(ACCOUNTS),
    "projects/<int:pk>/": read(MEMBERS),
    "projects/<int:pk>/edit/": read(WRITERS),
    "projects/<int:pk>/delete/": change(OWNER),
    "projects/<int:pk>/members/": change(OWNER),
    "projects/<int:pk>/members/suggestions/": read(NOBODY),  # unless they are enabled
    "projects/<int:pk>/members/<int:user>/remove/": change(OWNER),
    "projects/<int:pk>/leave/": change(GUESTS),
    "projects/<int:pk>/memory/": change(WRITERS),
    "chat/<int:pk>/project/": read(OWNER),
    "admin/dashboard/": read(ALL_REVIEWERS, ACCOUNTS - ALL_REVIEWERS),
    "admin/dashboard/versions/": read(ALL_REVIEWERS, ACCOUNTS - ALL_REVIEWERS),
    "admin/dashboard/<slug:name>.csv": read(ALL_REVIEWERS, ACCOUNTS - ALL_REVIEWERS),
    "account/profile/": read(ACCOUNTS),
    "account/setup-guide/": change(ACCOUNTS),
    "api/docs/": read(ACCOUNTS),
    "account/usage/": read(ACCOUNTS),
    "account/api-keys/": read(ACCOUNTS),
    "account/api-keys/new/": read(ACCOUNTS),
    "account/api-keys/<int:pk>/revoke/": change(OWNER),
    "account/webhooks/": read(ACCOUNTS),
    "account/webhooks/new/": read(ACCOUNTS),
    "account/webhooks/<int:pk>/": read(OWNER),
    "account/webhooks/<int:pk>/secret/": change(OWNER),
    "account/webhooks/<int:pk>/test/": change(OWNER),
    "account/webhooks/<int:pk>/delete/": change(OWNER),
    "account/webhooks/<int:pk>/deliveries/<int:number>/replay/": change(OWNER),
    "account/personalization/": read(ACCOUNTS),
    "account/personalization/clear/": change(ACCOUNTS),
    "account/personalization/forget/": change(ACCOUNTS),
    "account/memory/": read(ACCOUNTS),
    "account/memory/export/": read(ACCOUNTS),
    "account/memory/<int:pk>/": read(OWNER),
    "account/memory/<int:pk>/accept/": change(OWNER),
    "account/memory/<int:pk>/delete/": change(OWNER),
    "account/memory/<int:pk>/undo/": change(OWNER),
    "account/memory/<int:pk>/restore/": change(OWNER),
    "account/learning/": read(ACCOUNTS),
    "account/learning/<int:pk>/": read(OWNER),
    "account/learning/<int:pk>/use/": change(OWNER),
    "account/learning/<int:pk>/suggest/": change(OWNER),
    "account/learning/<int:pk>/delete/": change(OWNER),
    "account/recently-deleted/": read(ACCOUNTS),
    "account/recently-deleted/restore/": change(NOBODY),  # without ids there is nothing to do
    "account/recently-deleted/erase/": change(NOBODY),
    "account/data/": read(ACCOUNTS),
    "account/data/download/": change(ACCOUNTS),
    "account/erase/": change(NOBODY),  # unless self-erasure is enabled
    "traces/": read(ACCOUNTS),
    "traces/completions/": read(ACCOUNTS),
    "traces/views/": change(ACCOUNTS),
    "traces/views/<int:pk>/delete/": change(OWNER),
    "traces/columns/": change(ACCOUNTS),
    "traces/export/<slug:file_format>/": change(ACCOUNTS),  # only of runs they can see
    "traces/selected/": change(ACCOUNTS),  # only for runs they can see
    "traces/<int:pk>/": read(READERS),
    "traces/<int:pk>/text/<slug:name>/": read(READERS),
    # A document that the reader can't open is a saved passage.
    "traces/<int:pk>/sources/<int:number>/": read(READERS),
    # Masked for reviewers, and a file can't be masked.
    "traces/<int:pk>/files/<int:number>/": read(READERS),
    "traces/<int:pk>/attachments/<slug:digest>/": read(MEMBERS, REVIEWERS),
    "traces/<int:pk>/rating/": change(OWNER),
    "traces/<int:pk>/notes/": change(REVIEWERS),
    "traces/<int:pk>/notes/<int:note>/": change(REVIEWERS - ROOT),  # only the note's author
    "traces/<int:pk>/comments/": change(MEMBERS),
    "traces/<int:pk>/comments/<int:step>/": read(MEMBERS),
    "traces/<int:pk>/comments/<int:comment>/delete/": change(OWNER),
    "traces/<int:pk>/labels/": change(REVIEWERS),
    "traces/<int:pk>/hits/<int:hit>/": change(REVIEWERS),
    "traces/<int:pk>/flag/": change(REVIEWERS | OWNER),
    "traces/<int:pk>/assignee/": change(REVIEWERS),
    "traces/<int:pk>/verdict/": change(REVIEWERS),
    "traces/<int:pk>/score/": change(REVIEWERS),
    "traces/<int:pk>/correction/": change(REVIEWERS),
    "traces/<int:pk>/example/": change(REVIEWERS),
    "traces/<int:pk>/steps/<int:step>/review/": read(REVIEWERS),
    "traces/compare/": read(NOBODY),  # needs two numbers
    "traces/<int:pk>/compare/": read(READERS),
    "traces/<int:pk>/compare/<int:second_pk>/": read(READERS),
    "traces/<int:pk>/again/<int:step>/": read(OWNER | ROOT, READERS - OWNER - ROOT),
    "traces/<int:pk>/rerun/<int:step>/": change(OWNER | ROOT, READERS - OWNER - ROOT),
    "traces/<int:pk>/stop/": change(NOBODY),  # the run has ended
    "traces/<int:pk>/replay/": read(READERS),
    "traces/<int:pk>/replay/scene/": read(READERS),
    "traces/<int:pk>/steps/": read(READERS),
    "traces/<int:pk>/steps/<int:number>/": read(READERS),
    "traces/<int:pk>/steps/<int:number>/<slug:name>/": read(READERS),
    "traces/<int:pk>/unmask/": change(ROOT),
    "traces/<int:pk>/export.json": read(READERS),
    "traces/<int:pk>/export.md": read(READERS),
    "traces/<int:pk>/share/": read(REVIEWERS | OWNER),
    "traces/<int:pk>/share/<int:link>/revoke/": change(OWNER),
    "shared/<str:token>/": read(EVERYBODY),
    # Only by a link that shows everything; this one is masked.
    "shared/<str:token>/attachments/<slug:digest>/": Route("GET", NOBODY, redirected=NOBODY),
    "review/": read(ALL_REVIEWERS),
    "review/open/": read(ALL_REVIEWERS),
    "workflows/": read(ACCOUNTS),
    "workflows/new/": read(ROOT, ACCOUNTS - ROOT),
    "workflows/check/": change(ROOT, ACCOUNTS - ROOT),
    "workflows/completions/": read(ACCOUNTS),
    "hooks/<str:public_id>": Route("POST", NOBODY, redirected=NOBODY),  # needs a signature
    "workflows/schedules/<int:pk>/": read(OWNER),
    "workflows/schedules/<int:pk>/answer/": change(OWNER),
    "workflows/<int:pk>/": read(ACCOUNTS),
    "workflows/<int:pk>/start/": change(ACCOUNTS),
    "workflows/<int:pk>/edit/": read(ROOT),
    "workflows/<int:pk>/versions/<int:number>/": read(ROOT),
    "workflows/<int:pk>/versions/<int:number>/restore/": change(ROOT),
    "library/": read(ACCOUNTS),
    "library/new/": change(ACCOUNTS),
    "library/search/": read(ACCOUNTS),
    "library/<int:pk>/": read(MEMBERS),
    "library/<int:pk>/edit/": change(OWNER),
    "library/<int:pk>/delete/": change(OWNER),
    "library/<int:pk>/upload/": change(WRITERS, READER),
    "library/<int:pk>/add/": change(WRITERS, READER),
    "library/<int:pk>/documents/delete/": change(WRITERS, READER),
    "library/<int:pk>/accept/": change(GUESTS),
    "library/<int:pk>/access/": read(MEMBERS),
    "library/<int:pk>/access/groups/": change(OWNER),
    "library/<int:pk>/access/<int:user>/remove/": change(OWNER),
    "library/<int:pk>/access/suggestions/": read(NOBODY),  # unless suggestions are enabled
    "library/documents/<int:pk>/": read(MEMBERS),
    "library/documents/<int:pk>/file/": read(MEMBERS),
    "library/documents/<int:pk>/transcript/": read(MEMBERS),
    "library/documents/<int:pk>/retry/": change(WRITERS, READER),
    "library/documents/<int:pk>/cancel/": change(WRITERS, READER),
    "library/documents/<int:pk>/schedule/": change(WRITERS, READER),
    "library/sitemaps/<int:pk>/schedule/": change(WRITERS, READER),
    "library/sitemaps/<int:pk>/fetch/": change(WRITERS, READER),
    "library/sitemaps/<int:pk>/remove/": change(WRITERS, READER),
    "library/<int:pk>/sources/": change(NOBODY),  # only the installation's have sources
    "library/sources/<int:pk>/": change(ROOT),
    "library/sources/<int:pk>/remove/": change(ROOT),
    "library/sources/<int:pk>/<slug:action>/": change(ROOT),
    "approvals/": read(ACCOUNTS),
    "approvals/link/": read(ACCOUNTS),
    "approvals/new/": read(ACCOUNTS),
    "approvals/batch/": read(ACCOUNTS),
    "approvals/permissions/<int:pk>/revoke/": change(OWNER),
    "approvals/<int:pk>/": change(OWNER),
    "api/runs/<int:pk>/events/": read(READERS),
    "api/runs/<int:pk>/speech/": read(MEMBERS),  # reviewers see it masked, a voice can't be
    "mcp/<int:pk>/sign-in/": read(ROOT),  # everyone, if each user signs in
    "mcp/<int:pk>/sign-out/": change(NOBODY),  # unless they are signed in there
    "mcp/callback/": read(ACCOUNTS),  # an error unless they have started to sign in
    "mcp/client.json": read(EVERYBODY),
    "sandbox/diagram/": read(EVERYBODY),
    "sandbox/preview/": read(EVERYBODY),
    "branding/<int:revision>/<slug:color>.css": read(EVERYBODY),
    "branding/logo/<str:name>": read(EVERYBODY),
    "branding/banner/<slug:version>/dismiss/": change(EVERYBODY),
    "login/": read(EVERYBODY),
    "login/second/": read(EVERYBODY),  # back to the first step if that wasn't passed
    "login/app/": read(EVERYBODY),
    "login/passkey/": change(EVERYBODY),
    "login/passkey/done/": change(EVERYBODY),
    "login/oidc/": read(EVERYBODY),
    "login/oidc/back/": read(EVERYBODY),
    "login/oidc/signed-out/": read(EVERYBODY),
    ".well-known/agent-card.json": read(EVERYBODY),
    ".well-known/oauth-authorization-server": read(EVERYBODY),
    ".well-known/oauth-protected-resource": read(EVERYBODY),
    ".well-known/oauth-protected-resource/mcp": read(EVERYBODY),
    "oauth/authorize": read(ACCOUNTS),
    "oauth/device": read(ACCOUNTS),
    # Programs call them: what they may depends on what they bring, not on a session.
    "oauth/token": change(EVERYBODY),
    "oauth/revoke": change(EVERYBODY),
    "oauth/register": change(EVERYBODY),
    "oauth/device_authorization": change(EVERYBODY),
    "welcome/<str:uid>/<str:token>/": read(EVERYBODY),
    "invite/<str:token>/": read(EVERYBODY),
    "invite/<str:token>/sso/": change(EVERYBODY),  # back to the page without single sign-on
    "notifications/": read(ACCOUNTS),  # one's own
    "notifications/read/": change(ACCOUNTS),
    "notifications/link/": read(ACCOUNTS),
    "notifications/<int:pk>/": read(OWNER),
    "account/": read(ACCOUNTS),
    "account/confirm/": read(ACCOUNTS),
    "account/confirm/passkey/": change(ACCOUNTS),
    "account/confirm/passkey/done/": change(ACCOUNTS),
    "account/password/": change(ACCOUNTS),
    "account/app/": read(ACCOUNTS),
    "account/app/remove/": change(ACCOUNTS),
    "account/codes/": change(ACCOUNTS),
    "account/passkeys/": change(ACCOUNTS),
    "account/passkeys/done/": change(ACCOUNTS),
    "account/passkeys/<int:pk>/remove/": change(OWNER),
    "account/apps/<int:pk>/disconnect/": change(OWNER),
    "account/sessions/end/": change(ACCOUNTS),
    "account/sessions/<int:pk>/end/": change(OWNER),
    "logout/": change(ACCOUNTS),
    "language/": read(EVERYBODY),
}
