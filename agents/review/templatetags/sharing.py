from django import template

from agents.review import sharing
from agents.web.presentation import RunView

register = template.Library()


@register.simple_tag(takes_context=True)
def share_panel(context: template.Context, view: RunView) -> sharing.SharePanel | None:
    """Return what the page's user can do about links to this run."""
    return sharing.build_panel(view.run, context["user"], is_masked=view.masker is not None)
