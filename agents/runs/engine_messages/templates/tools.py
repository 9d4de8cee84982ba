"""Sentences about built-in tools: calculator, search, images, speech and other agents."""

from django.utils.translation import gettext_noop as _

TOOL_TEMPLATES = (
    _("The model didn't answer within %(seconds)s s."),
    _("Re-ranked by %(model)s."),
    _("Not re-ranked: %(message)s"),
    _("%(model)s didn't answer within %(seconds)s s."),
    _("%(model)s returned no order."),
    _("%(model)s returned no image."),
    _("%(model)s returned speech that is not MP3."),
    _("%(model)s returned no description."),
    _("The prompt is %(count)s characters long; the limit is %(limit)s."),
    _("The image was generated, and the user sees it.%(rewritten)s"),
    _("Names like %(name)s aren't supported. Write the number itself."),
    _("rounded to %(digits)s significant digits"),
    _("The expression is %(length)s characters long; the limit is %(limit)s."),
    _(
        "%(text)s isn't an arithmetic expression. Use numbers, parentheses and + - * / // "
        "%% **, e.g. (12.5 + 3) * 4."
    ),
    _("%(expression)s is ambiguous. Write either %(first)s or %(second)s."),
    _(
        "No passages found for %(query)s in %(where)s. Try other or fewer words. If that finds "
        "nothing either, say that the documents don't contain it."
    ),
    _(
        "No passages found for %(query)s. Try other or fewer words. If that finds nothing "
        "either, say that the documents don't contain it."
    ),
    _("No search has returned a passage with the number %(number)s. Search first."),
    _("Ask the agent %(agent)s. %(description)s"),
)
TOOL_SENTENCES = (
    _("This agent hides personal data from models."),
    _("Describe the image in `prompt`."),
    _("Enter the image's name."),
    _("Check that it is a model that generates images."),
    _("Choose another speech model."),
    _("There are no documents to read."),
    _("There are no documents to search."),
    _("Enter a passage's number or a title."),
    _("Functions aren't supported. Use * to multiply and ** 0.5 for a square root."),
    _("Attributes aren't supported. Use numbers and + - * / // % **."),
    _("Comparisons aren't supported. Calculate both sides and compare them."),
    _("^ isn't a power. Use **, e.g. 2 ** 10."),
    _("Commas only separate thousands, e.g. 1,234.5. Use a point for decimals."),
    _("The result is too close to zero to represent."),
    _("This can't be calculated."),
    _("A number in this calculation is too large."),
    _("This is nested too deeply. Calculate it in parts."),
    _("Enter an expression, e.g. 2 + 2."),
    _("Write a percentage as a fraction, e.g. 12.5 / 100 * 3480."),
    _("The root of a negative number isn't a real number."),
    _("Only numbers, parentheses and + - * / // % ** are supported."),
    _("Enter a query."),
    _("The question, with everything needed to answer it. The reader hasn't seen this chat."),
    _("Whose expertise is needed. Leave it out to ask the user."),
    _("What to do, with everything the agent needs to know. It hasn't seen this chat."),
    _("For example (12.5 + 3) * 4 ** 2"),
    _("For example: how secrets are rotated"),
)
