"""“Profile”: how a user appears, how pages look to them, and what agents know about them."""

from copy import copy

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import get_language_info, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django.views.i18n import set_language as set_language_cookie

from agents.access.requests import UserRequest
from agents.accounts.models import Profile
from agents.accounts.users import confusable_names, profiles
from agents.web import preferences
from agents.web.presentation.formats import dates

NAME_TAKEN = gettext_lazy(
    "Another user has this name or one that looks like it. Choose another one."
)


class ProfileForm(forms.ModelForm):
    """A form for the user's own profile."""

    class Meta:
        model = Profile
        fields = (
            "display_name",
            "language",
            "time_zone",
            "date_format",
            "clock",
            "has_single_keys",
        )

    def clean_display_name(self) -> str:
        name = profiles.clean_name(self.cleaned_data["display_name"])
        if name and profiles.is_taken(name, self.instance.user):
            raise forms.ValidationError(NAME_TAKEN)
        self.instance.skeleton = confusable_names.skeleton(name) if name else ""
        return name

    def clean_language(self) -> str:
        language = self.cleaned_data["language"]
        return language if language in dict(settings.LANGUAGES) else ""

    def clean_time_zone(self) -> str:
        zone = self.cleaned_data["time_zone"]
        if zone and zone not in preferences.time_zones():
            raise forms.ValidationError(
                _("There is no time zone named %(zone)s. Choose one from the list.")
                % {"zone": zone}
            )
        return zone


@never_cache
@require_http_methods(["GET", "POST"])
def profile_page(request: UserRequest) -> HttpResponse:
    """Show the profile and save changes to it."""
    profile = profiles.of_user(request.user)
    # The page's bar has the saved name, not one that is rejected.
    form = ProfileForm(request.POST or None, instance=copy(profile))
    if request.method == "GET" or not form.is_valid():
        context = {
            "form": form,
            "zones": sorted(zone for zone in preferences.time_zones() if "/" in zone),
            "languages": [get_language_info(code) for code, _name in settings.LANGUAGES],
            "example": dates.datetime_text(timezone.now()),
            "zone_now": timezone.get_current_timezone_name(),
        }
        status = 422 if request.method == "POST" else 200
        return render(request, "people/profile.html", context, status=status)
    request.user.profile = form.save()
    with translation.override(form.cleaned_data["language"] or translation.get_language()):
        messages.success(request, _("Profile saved."))
    return redirect("people:profile")


@require_POST
def switch_setup_guide(request: UserRequest) -> HttpResponse:
    """Hide the console's set-up checklist for this user, or bring it back."""
    profiles.save_setting(request.user, has_setup_guide=request.POST.get("on") == "1")
    return redirect("admin:index" if request.user.is_staff else "people:profile")


def set_language(request: HttpRequest) -> HttpResponse:
    """Switch the language in this browser, and in the profile of a signed-in user."""
    response = set_language_cookie(request)
    language = request.POST.get("language", "")
    if (
        request.method == "POST"
        and request.user.is_authenticated
        and language in dict(settings.LANGUAGES)
    ):
        profiles.save_setting(request.user, language=language)
    return response
