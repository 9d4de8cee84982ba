"""Console page that says what each role can do."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from agents.models.rights import Role

from . import people_list, roles

PERMISSION = "auth.view_user"


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": _("Roles"),
        "cards": [_card(request, role) for role in Role],
        "abilities": [
            (text, [(role, role in allowed) for role in Role])
            for text, allowed in roles.ABILITIES
        ],
        "individual": roles.INDIVIDUAL_PERMISSIONS.values(),
    }
    return render(request, "admin/people/roles.html", context)


def _card(request: HttpRequest, role: Role) -> dict[str, Any]:
    listed = people_list.RoleFilter(request, {"role": [role.value]}, User, None)  # type: ignore[arg-type]
    count = listed.queryset(request, User.objects.filter(is_active=True)).count()
    about = roles.DESCRIPTIONS[role]
    return {"role": role, "about": about, "count": count}
