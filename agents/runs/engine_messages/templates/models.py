"""Sentences about models: their providers, their settings and their replies."""

from django.utils.translation import gettext_noop as _

MODEL_TEMPLATES = (
    _("Couldn't connect to the model %(model)s: %(reason)s."),
    _("The answer from %(model)s was cut off."),
    _("%(model)s didn't respond in time."),
    _("%(model)s sent an unreadable response."),
    _("The provider of %(model)s rejected the API key: %(words)s"),
    _("The chat is too long for %(model)s: %(words)s"),
    _("The provider can't find %(model)s: %(words)s"),
    _("The provider of %(model)s returned an error (HTTP %(status)s): %(words)s"),
    _("The provider of %(model)s rejected the request: %(words)s"),
    _("%(model)s is rate limited by its provider: %(words)s"),
    _("The provider's quota for %(model)s is used up: %(words)s"),
    _("%(model)s can't call tools: %(words)s"),
    _("%(model)s can't read images: %(words)s"),
    _("The provider of %(model)s blocked the request: %(words)s"),
    _("The server hasn't loaded %(model)s: %(words)s"),
    _("%(model)s is still loading: %(words)s"),
    _("No host is available for %(model)s: %(words)s"),
    _("The model name %(model)s doesn't include a provider."),
    _("The model sent nothing for %(seconds)s s."),
    _("%(model)s is busy: all %(most)s slots stayed in use for %(seconds)s s."),
    _("%(model)s stayed at its limit of %(most)s requests per minute for %(seconds)s s."),
    _("%(model)s stayed at its limit of %(most)s tokens per minute for %(seconds)s s."),
    _("The model %(model)s is disabled."),
    _("The model %(model)s has no API key."),
    _("The model %(model)s has no URL."),
    _("The API key of the model %(model)s can't be decrypted."),
    _("You don't have access to the model %(model)s."),
    _("The model %(model)s doesn't exist."),
    _("The model %(model)s can't be used: %(why)s"),
    _("The model adapter failed (%(name)s)."),
    _("The model adapter timed out (%(name)s)."),
    _("The model adapter lost its connection (%(name)s)."),
    _("Unknown provider: %(name)s."),
    _("%(name)s doesn't include a provider. Enter it as provider/model."),
    _("%(name)s isn't allowed for %(provider)s. Allowed: %(names)s."),
    _("%(name)s isn't allowed for %(provider)s. No settings are allowed here."),
    _("Invalid value for %(name)s: expected %(form)s."),
    _("%(name)s refers to a variable, a file or a service. Enter the value itself."),
    _("%(name)s doesn't use an API version."),
    _("%(name)s doesn't use a region."),
    _("Try again in %(seconds)s s."),
    _("The model didn't write a valid plan: %(why)s"),
    _("The provider of %(model)s rejected the API key."),
    _("%(model)s is rate limited by its provider."),
    _("The provider's quota for %(model)s is used up."),
    _("%(model)s can't call tools."),
    _("%(model)s can't read images."),
    _("The provider of %(model)s blocked the request."),
    _("The server hasn't loaded %(model)s."),
    _("%(model)s is still loading."),
    _("No host is available for %(model)s."),
    _("Run “ollama pull %(name)s” on the server, or choose another model."),
    _("The chat is too long for %(model)s."),
    _("The provider can't find %(model)s."),
    _("The provider of %(model)s returned an error (HTTP %(status)s)."),
    _("The provider of %(model)s rejected the request."),
    _("%(model)s can't be called directly."),
    _("Set the environment variable %(names)s."),
    _("Enter its URL, or set %(names)s."),
    _("an object with %(names)s"),
    _("text (max %(limit)s characters)"),
    _("%(name)s in the environment"),
    _("The queue of %(model)s can't be read right now."),
    _("The model's reply is longer than %(limit)s characters."),
)
MODEL_SENTENCES = (
    _("Enter it as provider/model, without spaces, URLs or references."),
    _("This is a cloud metadata address. It can't serve models."),
    _("Leave this empty. The region determines the URL."),
    _("Enter a full URL, e.g. https://host/v1."),
    _("The URL contains a password. Move it to the key field."),
    _(
        "aws_bedrock_runtime_endpoint needs its own key. Enter an API key, or "
        "aws_access_key_id and aws_secret_access_key."
    ),
    _(
        "aws_bedrock_runtime_endpoint can't be used while the environment sets an AWS role "
        "or profile, because its credentials would be sent to that endpoint."
    ),
    _("This model has a setting that isn't allowed."),
    _("Unknown provider."),
    _("The model adapter failed."),
    _("Ask your administrator to check the server log."),
    _("Couldn't connect to the model."),
    _("Check that the URL is correct and the server is running, then try again."),
    _("The model request failed."),
    _("The model took too long to respond."),
    _("It may be overloaded. Try again, or choose another model."),
    _("The model was still at work when its time was over."),
    _(
        "It may be overloaded or still reading a long prompt. Try again, choose another model, "
        "or ask an administrator to raise “Timeout for the first word” (Settings, Models)."
    ),
    _(
        "It may be overloaded. Try again, choose another model, or ask an administrator to "
        "raise “Timeout between words” (Settings, Models)."
    ),
    _(
        "Try again, choose another model, or ask an administrator to raise “Timeout for a "
        "whole answer” (Settings, Models)."
    ),
    _("The model's provider is rate limiting requests."),
    _("The model's provider returned an error."),
    _("The model returned an empty answer."),
    _("Try again, or choose another model."),
    _("Try again later, or choose another model."),
    _("Check this model's API key."),
    _("Check the model's name and URL."),
    _("Start a new chat, or choose a model with a larger context window."),
    _("Make your request smaller, or raise the model's output limit."),
    _("This agent couldn't parse the model's reply."),
    _("Try again, or choose a model that supports tool calling."),
    _("The model keeps failing, so it's paused for now."),
    _("Wait for the retry, or choose another model."),
    _("This model has reached its request limit."),
    _("The model declined to answer."),
    _("The model provider's content filter cut off the answer."),
    _("The model's provider blocked the answer."),
    _("Rephrase your question, or choose another model."),
    _("The model reached its output limit before it answered."),
    _("The model didn't finish before its timeout."),
    _("The answer was cut off at the model's output limit."),
    _("The Action doesn't name a tool."),
    _("The Final Answer is empty."),
    _("The reply has an Action Input without an Action."),
    _("The reply has a Thought, but no Action or Final Answer after it."),
    _("The reply has no Action and no Final Answer."),
    _("The model's output was cut off during a tool call, so the tool wasn't called."),
    _("Set ASHIATO_MODEL_ROUTE to auto, or choose another model."),
    _("The server redirected to another URL. Redirects aren't followed."),
    _("Enter it as provider/model, e.g. openai/… or anthropic/…."),
    _("The quota at the model's provider is used up."),
    _("This server doesn't list its models."),
    _("Enter the model's name."),
    _("The model is still loading."),
    _(
        "Add credit or raise the spending limit in the provider's billing settings, or choose "
        "another model."
    ),
    _(
        "The daily quota is used up. Try again tomorrow, raise the limit at the provider, or "
        "choose another model."
    ),
    _("Raise the budget of this key in the LiteLLM proxy, or choose another model."),
    _(
        "Start vLLM with --enable-auto-tool-choice and --tool-call-parser, or set the agent's "
        "tool call format to “ReAct text”."
    ),
    _("Start llama-server with --jinja, or set the agent's tool call format to “ReAct text”."),
    _(
        "Choose a model that supports tools, or set the agent's tool call format to “ReAct "
        "text”."
    ),
    _("Choose a model that can read images, or remove the image."),
    _("Start llama-server with --mmproj, or choose a model that can read images."),
    _("Start a new chat, or start llama-server with a larger --ctx-size."),
    _("Start a new chat, or start vLLM with a larger --max-model-len."),
    _("Start a new chat, or raise num_ctx in the model's additional settings."),
    _("Start a new chat, or load the model in LM Studio with a larger context length."),
    _("Check the model's name in the LiteLLM proxy's configuration."),
    _("Load a model in LM Studio, or turn on just-in-time loading, then try again."),
    _("Try again in a minute, or choose another model."),
    _("Change the privacy settings of your OpenRouter account, or choose another model."),
    _(
        "Check the model's name and its provider settings at OpenRouter, or choose another "
        "model."
    ),
    _("Check the provider's API key in the LiteLLM proxy."),
    _("Contact your administrator, or choose another model."),
    _("The API key"),
    _("The model can't be used with its current settings."),
    _("The model wrote nothing."),
)
# What a setting of a model must be, and where it comes from.
SETTING_WORDS = (
    _("a whole number"),
    _("a whole number above 0"),
    _("a word"),
    _("a name"),
    _("text or a list of text values"),
    _("an object with number values"),
    _("an object with text, number or true/false values"),
    _("the secret itself, without spaces"),
    _("a full URL, e.g. https://host/v1"),
    _("a region, e.g. eu-central-1"),
    _("a role ARN"),
    _("an ID"),
    _("a version, e.g. 2024-10-21"),
    _("a project ID"),
    _("a location, e.g. europe-west1"),
    _("a service account key in JSON"),
    _("no model is configured"),
    _("set in the console"),
    _("no API key or local server was found"),
    _("a list of words"),
    _("a list of names"),
    _("a number of seconds or a duration, e.g. 30s or 5m"),
    _("a word, or an object with effort and summary"),
    _("true, false or a word"),
    _("a list of objects with category and threshold"),
)
