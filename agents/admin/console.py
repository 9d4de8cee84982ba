from django.contrib import admin

from .recorded import Recorded


class ConsoleAdmin(Recorded, admin.ModelAdmin):
    """A page of the console: what all of them have in common."""
