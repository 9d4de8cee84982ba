"""The engine's messages, listed for translators: the engine itself has no gettext.

Messages are saved in English and matched again when displayed: `TEMPLATES` have placeholders,
all others match exactly.
"""

import re

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

MAX_TRANSLATED_CHARS = 1_000
TEMPLATES = (
    _("%(sentence)s Tried %(models)s."),
    _("%(name)s has failed %(n)s times in a row; it is tried again in %(seconds)s seconds."),
    _("%(name)s has failed %(n)s times in a row; it is being tried again now."),
    _("The answer does not fit its schema: %(problems)s."),
    _("The answer is not JSON: %(reason)s."),
    _("There are %(count)s JSON values in the answer, and it must be one."),
    _("The answer has more than %(limit)s characters."),
    _("The answer is nested more than %(levels)s levels deep."),
    _("The error message is hidden: %(sentence)s"),
    _("It matches the rule %(rule)s."),
    _("What matches the rule %(rule)s is masked."),
    _("The rule %(rule)s would have allowed it."),
    _("The rule %(rule)s would have warned of it."),
    _("The rule %(rule)s would have masked it."),
    _("The rule %(rule)s would have blocked it."),
    _("It is %(tokens)s tokens long; at most %(limit)s are allowed."),
    _("This is not a regular expression RE2 can read: %(words)s."),
    _("A pattern has at most %(limit)s characters."),
    _("Could not reach the model %(model)s: %(reason)s."),
    _("The answer of %(model)s was cut off."),
    _("%(model)s did not answer in time."),
    _("%(model)s sent something that cannot be read."),
    _("The provider of %(model)s did not accept the key: %(words)s"),
    _("The conversation is too long for %(model)s: %(words)s"),
    _("The provider of %(model)s does not have it: %(words)s"),
    _("The provider of %(model)s has a problem (HTTP %(status)s): %(words)s"),
    _("The provider of %(model)s refused the request: %(words)s"),
    _("%(model)s is rate limited by its provider: %(words)s"),
    _("The name %(model)s does not say whose model it is."),
    _("The model sent nothing for %(seconds)s seconds."),
    _(
        "%(model)s answers at most %(most)s at once, and the turn did not come within "
        "%(seconds)s seconds."
    ),
    _(
        "%(model)s may be asked %(most)s times a minute, and the turn did not come within "
        "%(seconds)s seconds."
    ),
    _(
        "%(model)s may use %(most)s tokens a minute, and the turn did not come within "
        "%(seconds)s seconds."
    ),
    _("The model %(model)s is switched off."),
    _("The model %(model)s has no key."),
    _("The model %(model)s has no address."),
    _("The key of the model %(model)s cannot be read any more."),
    _("You may not use the model %(model)s."),
    _("There is no model called %(model)s."),
    _("The model %(model)s can't be used: %(why)s"),
    _("The model adapter failed (%(name)s)."),
    _("The model adapter timed out (%(name)s)."),
    _("The model adapter lost its connection (%(name)s)."),
    _("There is no provider called %(name)s."),
    _("%(name)s doesn't include a provider. Enter it as provider/model."),
    _("%(name)s isn't allowed for %(provider)s. Allowed: %(names)s."),
    _("%(name)s isn't allowed for %(provider)s. No settings are allowed here."),
    _("%(name)s must be %(words)s."),
    _("%(name)s refers to a variable, a file or a service. Enter the value itself."),
    _("%(name)s doesn't use an API version."),
    _("%(name)s doesn't use a region."),
    _("Try again in %(seconds)s seconds."),
    _("A run may take %(limit)s seconds."),
    _("A run may use %(limit)s tokens."),
    _("A run may cost %(limit)s dollars."),
    _("%(count)s of %(all)s agree: %(names)s."),
    _("They gave %(count)s different answers."),
    _("There is no majority: they gave %(count)s different answers."),
    _("Only %(name)s answered."),
    _("No member of the panel could answer. %(reasons)s"),
    _("%(agent)s could not finish: %(reason)s"),
    _("This would go in circles: %(path)s. Do it yourself."),
    _("Tasks may be handed on %(times)s times. Do it yourself."),
    _("There is no plan that can be carried out: %(why)s"),
    _("Given up after %(plans)s plans. %(why)s"),
    _("“%(name)s” did not give what was expected (%(expected)s): %(why)s"),
    _("“%(name)s” failed: %(why)s"),
    _("It took longer than %(seconds)s seconds."),
    _("It took longer than %(seconds)s seconds. It may have been done, or not."),
    _("%(failed)s of %(all)s failed: %(why)s"),
    _("It is not so that %(condition)s."),
    _("%(condition)s did not come true in %(rounds)s rounds."),
    _("It could not be checked: %(why)s"),
)
FORM_TEMPLATES = (
    _("It must be a–z, 0–9, single - or _ between them, and at most %(n)s characters."),
    _("Item %(n)s holds a character that cannot be seen."),
    _("%(name)s is no name of a variable."),
    _("%(server)s cannot be started: %(reason)s."),
    _("the variable %(name)s can make it run other programs"),
    _("the variable %(name)s is set automatically"),
    _(
        "%(option)s isn't an allowed option. Options that read files, connect to other hosts "
        "or weaken the sandbox are blocked"
    ),
    _("%(path)s contains or is inside this server's data folder"),
    _("%(path)s is inside this server's data folder"),
    _("there is no folder %(path)s"),
    _("there is no program %(program)s here"),
    _("%(name)s has no pinned version, so a new release can change what runs."),
    _("The arguments are %(size)s characters long, which is too long to review."),
    _("%(name)s is no name of a header."),
    _("%(name)s is set by the connection itself."),
    _("The value of %(name)s must be plain ASCII."),
    _("The value of %(name)s holds a NUL."),
    _("%(what)s has a blank, %(blank)s: write the value itself."),
)
PLAN_TEMPLATES = (
    _("%(sentence)s Did you mean %(name)s?"),
    _("In %(field)s of %(step)s, character %(position)s: %(sentence)s"),
    _("This cannot be read: %(reason)s."),
    _("This is longer than %(limit)s characters."),
    _("This is nested more than %(limit)s levels deep."),
    _("There are more than %(limit)s values in this."),
    _("Tags (%(tag)s) are not taken."),
    _("There is no field %(name)s here."),
    _("There are two steps called %(name)s."),
    _("These steps wait for each other: %(names)s."),
    _("Plans are nested at most %(limit)s levels deep."),
    _("A plan has at most %(limit)s steps."),
    _("%(step)s depends on %(name)s, and there is no such step."),
    _("%(step)s refers to the parameter %(name)s, which is not declared."),
    _("%(step)s refers to the step %(name)s, which is not there."),
    _("%(step)s refers to the step %(name)s, which may not be over: add it to depends_on."),
    _("%(step)s refers to %(name)s, and there is no such name here."),
    _("%(step)s needs the tool %(name)s, which is not there."),
    _("%(step)s needs the agent %(name)s, which is not there."),
    _("%(step)s needs the role %(name)s, which is not there."),
    _("%(step)s does not give %(tool)s its argument %(name)s."),
    _("%(tool)s takes no argument %(name)s."),
    _("The step %(name)s needs one of tool, agent, ask and plan."),
    _("The step %(name)s is two things: %(kinds)s."),
    _("The step %(name)s approves, but asks nothing."),
    _("The step %(name)s asks a person, and so it has no timeout."),
    _("The step %(name)s needs a list, or an expression, in for_each."),
    _("The step %(name)s needs a whole number in %(field)s."),
    _("The step %(name)s needs %(field)s from %(least)s to %(most)s."),
    _("%(name)s is written twice here."),
    _("%(name)s has at most %(limit)s characters."),
    _("%(name)s is a mapping with a name and steps."),
    _("%(name)s is a mapping with steps."),
    _("%(name)s is a mapping of names to values."),
    _("%(name)s is a list."),
    _("%(name)s is text."),
    _("%(name)s is true or false."),
    _("%(name)s is a whole number."),
    _("%(name)s is a number of seconds, or such as 30s or 5m."),
    _("An expression has at most %(limit)s characters."),
    _("An expression is nested at most %(limit)s levels deep."),
    _("Arguments are nested at most %(limit)s levels deep."),
    _("A path has at most %(limit)s parts."),
    _("%(seen)s is not expected here."),
    _("A value is expected here, and not %(seen)s."),
    _("A name is expected here, and not %(seen)s."),
    _("%(sign)s is expected here, and not %(seen)s."),
    _("There is no function %(name)s."),
    _("%(name)s takes %(count)s values."),
    _("%(left)s %(sign)s %(right)s cannot be worked out."),
    _("%(left)s %(sign)s %(right)s cannot be compared."),
    _("%(item)s cannot be looked for in %(whole)s."),
    _("%(name)s is of text, a list or a mapping, and not of %(given)s."),
    _("%(name)s is of text, and not of %(given)s."),
    _("%(name)s is of a list, and not of %(given)s."),
    _("%(name)s is of a number, and not of %(given)s."),
    _("%(name)s keeps 0 to %(limit)s decimals."),
    _("%(words)s is not a number."),
    _("This makes more than %(limit)s characters."),
    _("This looks at more than %(limit)s items."),
)
REASONS = (
    _("no host of this name is known"),
    _("nobody answered in time"),
    _("the secure connection failed"),
    _("the connection was refused"),
)
SENTENCES = (
    _("A guardrail blocked the question or the answer."),
    _("The run was stopped before it had an answer."),
    _("The run called the same tool with the same input too often."),
    _("The run called one tool too often."),
    _("The run used up its time, token or cost budget."),
    _("Enter it as provider/model, without spaces, URLs or references."),
    _("This is a cloud metadata address. It can't serve models."),
    _("Leave this empty. The region determines the address."),
    _("Enter a full URL, e.g. https://host/v1."),
    _("The URL contains a password. Move it to the key field."),
    _(
        "aws_bedrock_runtime_endpoint needs its own key. Enter an API key, or "
        "aws_access_key_id and aws_secret_access_key."
    ),
    _(
        "aws_bedrock_runtime_endpoint can't be used while the environment sets an AWS role or "
        "profile, because its credentials would be sent to that endpoint."
    ),
    _("This model has a setting that isn't allowed."),
    _("This provider is unknown."),
    _("The model adapter failed."),
    _("Ask your administrator to check the server log."),
    _("A pattern cannot be empty."),
    _("A pattern cannot take characters apart, byte by byte."),
    _("This pattern matches everything, even an empty text."),
    _("This pattern matches places without any character."),
    _("This pattern takes too long to look for: make its repetitions fewer."),
    _("There is half a character in this pattern."),
    _("Say what the task is."),
    _("The model wrote no plan that can be carried out."),
    _("This expression cannot be used."),
    _("The plan was declined."),
    _("A step before it failed."),
    _("Nothing before it failed."),
    _("Given up after 1 plan."),
    _("The run could not go on."),
    _("Try again; if it happens again, tell your administrator."),
    _("The model could not be reached."),
    _("Check that its address is right and that it is running, then try again."),
    _("The model could not be used."),
    _("The model took too long."),
    _("It may be overloaded. Try again, or choose another model."),
    _("The model's provider asks to wait."),
    _("The model's provider has a problem."),
    _("The model's provider sent an empty answer."),
    _("Try again, or choose another model."),
    _("Try again in a while, or choose another model."),
    _("Check the API key of this model."),
    _("Check the name of the model and its address."),
    _("Start a new chat, or choose a model with a larger context."),
    _("The model was cut off in the middle of a tool call, so the call was not made."),
    _("Ask for something smaller, or raise the model's output limit."),
    _("The model's reply followed no form that this agent can read."),
    _("Try again, or choose a model that can call tools itself."),
    _("The tool failed."),
    _("There is no tool of this name."),
    _("There is a tool of this name already."),
    _("The tool failed while it ran."),
    _("The answer did not fit its schema."),
    _("There is no JSON in the answer."),
    _("The answer is empty."),
    _("The answer is too large to check against its schema."),
    _("It has failed too often, and is left alone for a while."),
    _("Wait until then, or choose another model."),
    _("As many ask this model as its limits allow."),
    _("Tell your administrator, or choose another agent."),
    _("The model declined to answer."),
    _("The answer was cut off by a filter of the model's provider."),
    _("The model's provider withheld the answer."),
    _("Ask in other words, or choose another model."),
    _("The model reached its output limit before it had an answer."),
    _("The tool call could not be read. Make it again, with one JSON object as its input."),
    _("It must be a whole address such as https://host/mcp."),
    _("It holds a password: put it into headers."),
    _("It is empty."),
    _("It holds a character that cannot be seen."),
    _("This pattern cannot be used."),
    _("This JSON Schema cannot be used."),
    _("This expression cannot be used."),
    _("The run reached one of its limits."),
    _("The run used up its steps before it had an answer."),
    _("No agent is enabled."),
    _("Switch one on in the admin console."),
    _("The account of whoever asked was switched off."),
    _("You may not use this agent any more."),
    _("Choose another one, or ask an administrator."),
    _("Something went wrong on the server."),
    _("The model did not finish within its time."),
    _("The answer was cut off at the output limit of the model."),
    _("This looks like a private key. It was not sent to the model."),
    _("This asks the agent to forget its instructions."),
    _("They all agree."),
    _("There was no judgement."),
    _("There was no answer."),
    _("This panel has no members."),
)

PLAN_SENTENCES = (
    _("Say which step is meant: steps.name."),
    _('A step is named in quotes: steps["name"].'),
    _("This number is too large."),
    _("This divides by zero."),
    _("This is nested too deeply to be written as text."),
    _("These are nested too deeply to be compared."),
    _("There is a second document here; one is taken."),
    _("Aliases (*name) are not taken: write it out."),
    _("A name is text."),
    _("A workflow is a mapping with a name and steps."),
    _("The workflow needs a name."),
    _("A step is a mapping with a name and what it does."),
    _("A plan needs at least one step."),
    _("the end"),
    _("true or false"),
    _("a number"),
    _("text"),
    _("a mapping"),
    _("a list"),
    _("1 or more"),
    _("its form is wrong"),
    _("control characters are not allowed"),
    _("mapping values are not allowed in this context"),
    _("could not find expected ':'"),
    _("did not find expected key"),
    _("did not find expected '-' indicator"),
    _("did not find expected node content"),
    _("did not find expected ',' or ']'"),
    _("did not find expected ',' or '}'"),
    _("found unexpected end of stream"),
    _("found character that cannot start any token"),
    _("found undefined tag handle"),
)
# Constraints on model parameters.
SETTING_WORDS = (
    _("a whole number"),
    _("a whole number above 0"),
    _("a word"),
    _("a name"),
    _("text or a list of texts"),
    _("an object of numbers"),
    _("an object with text, number, true or false values"),
    _("the secret itself, without spaces"),
    _("a full URL, e.g. https://host/v1"),
    _("a region, e.g. eu-central-1"),
    _("a role ARN"),
    _("an ID"),
    _("a version, e.g. 2024-10-21"),
    _("a project ID"),
    _("a location, e.g. europe-west1"),
    _("the JSON key of a service account"),
)
EXACT_SENTENCES = {*SENTENCES, *PLAN_SENTENCES, *SETTING_WORDS, *REASONS}


def translate(sentence: str) -> str:
    """Translate a message of the engine; unknown ones are returned unchanged."""
    if not sentence:
        return ""
    is_form = sentence not in EXACT_SENTENCES and len(sentence) <= MAX_TRANSLATED_CHARS
    for form in MESSAGE_TEMPLATES if is_form else ():
        if found := form.match(sentence):
            places = {name: translate(words) for name, words in found.groupdict().items()}
            return gettext(form.template) % places
    return gettext(sentence)


class MessageTemplate:
    """A template and a pattern that recognizes messages made from it."""

    def __init__(self, template: str) -> None:
        parts = re.split(r"%\((\w+)\)s", template)
        self.template = template
        self.first, *self.between, self.last = parts[::2]
        places = [f"(?P<{name}>.+?)" for name in parts[1::2]]
        words = [re.escape(word) for word in parts[::2]]
        pairs = zip(words, [*places, ""], strict=True)
        self.pattern = re.compile("".join(word + place for word, place in pairs), re.S)

    def match(self, sentence: str) -> re.Match[str] | None:
        """Match the template.

        Fixed parts are checked first, because the pattern alone would try every placeholder
        with every other.
        """
        may_be = sentence.startswith(self.first) and sentence.endswith(self.last)
        if not may_be or any(word not in sentence for word in self.between):
            return None
        return self.pattern.fullmatch(sentence)


MESSAGE_TEMPLATES = [
    MessageTemplate(template) for template in (*TEMPLATES, *FORM_TEMPLATES, *PLAN_TEMPLATES)
]
