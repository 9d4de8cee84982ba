"""Console page that says what each role can do."""

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from agents.models.catalog.rights import Role

from . import people_list, roles

PERMISSION = "auth.view_user"


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    cards = []
    for role in Role:
        listed = people_list.RoleFilter(request, {"role": [role.value]}, User, None)  # type: ignore[arg-type]
        count = listed.queryset(request, User.objects.filter(is_active=True)).count()
        cards.append({"role": role, "about": roles.DESCRIPTIONS[role], "count": count})
    context = {
        **admin.site.each_context(request),
        "title": _("Roles"),
        "cards": cards,
        "abilities": [
            (text, [(role, role in allowed) for role in Role])
            for text, allowed in roles.ABILITIES
        ],
        "individual": roles.INDIVIDUAL_PERMISSIONS.values(),
    }
    return render(request, "admin/people/roles.html", context)
