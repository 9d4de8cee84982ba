"""What a provider's or a model server's error means, and what helps.

The HTTP status alone doesn't say: a 429 may be a rate limit or an empty account, a 500 a server
that was started without a flag. So the response's own words and codes are looked at first. Each
cause is tested with the body that the server really sends.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from agents.engine.errors import ModelError, ModelLoading, QuotaExhausted
from agents.engine.sentences import Sentence
from agents.engine.sentences import Sentence as _


class ProviderSentence(NamedTuple):
    """An error sentence, without and with the provider's own message."""

    plain: Sentence
    quoting: Sentence

    def fill(self, model: str, message: str, status: int | None = None) -> str:
        sentence = self.quoting if message else self.plain
        return sentence.fill(model=repr(model), words=message, status=status)


QUOTA_USED_UP = ProviderSentence(
    _("The provider's quota for %(model)s is used up."),
    _("The provider's quota for %(model)s is used up: %(words)s"),
)
TOOLS_REJECTED = ProviderSentence(
    _("%(model)s can't call tools."), _("%(model)s can't call tools: %(words)s")
)
IMAGES_REJECTED = ProviderSentence(
    _("%(model)s can't read images."), _("%(model)s can't read images: %(words)s")
)
REQUEST_BLOCKED = ProviderSentence(
    _("The provider of %(model)s blocked the request."),
    _("The provider of %(model)s blocked the request: %(words)s"),
)
CHAT_TOO_LONG = ProviderSentence(
    _("The chat is too long for %(model)s."), _("The chat is too long for %(model)s: %(words)s")
)
MODEL_NOT_FOUND = ProviderSentence(
    _("The provider can't find %(model)s."), _("The provider can't find %(model)s: %(words)s")
)
MODEL_NOT_LOADED = ProviderSentence(
    _("The server hasn't loaded %(model)s."), _("The server hasn't loaded %(model)s: %(words)s")
)
MODEL_LOADING = ProviderSentence(
    _("%(model)s is still loading."), _("%(model)s is still loading: %(words)s")
)
NO_HOST_AVAILABLE = ProviderSentence(
    _("No host is available for %(model)s."), _("No host is available for %(model)s: %(words)s")
)

ADD_CREDIT = _(
    "Add credit or raise the spending limit in the provider's billing "
    "settings, or choose another model."
)
WAIT_FOR_RESET = _(
    "The daily quota is used up. Try again tomorrow, raise the limit "
    "at the provider, or choose another model."
)
RAISE_BUDGET = _("Raise the budget of this key in the LiteLLM proxy, or choose another model.")
VLLM_FLAGS = _(
    "Start vLLM with --enable-auto-tool-choice and --tool-call-parser, "
    "or set the agent's tool call format to “ReAct text”."
)
LLAMA_SERVER_FLAG = _(
    "Start llama-server with --jinja, or set the agent's tool call format to “ReAct text”."
)
USE_REACT = _(
    "Choose a model that supports tools, or set the agent's tool call format to “ReAct text”."
)
CHOOSE_VISION = _("Choose a model that can read images, or remove the image.")
ADD_PROJECTOR = _("Start llama-server with --mmproj, or choose a model that can read images.")
REPHRASE = _("Rephrase your message, or choose another model.")
NEW_CHAT = _("Start a new chat, or choose a model with a larger context window.")
RAISE_LLAMA_CONTEXT = _("Start a new chat, or start llama-server with a larger --ctx-size.")
RAISE_VLLM_CONTEXT = _("Start a new chat, or start vLLM with a larger --max-model-len.")
RAISE_OLLAMA_CONTEXT = _(
    "Start a new chat, or raise num_ctx in the model's additional settings."
)
RAISE_STUDIO_CONTEXT = _(
    "Start a new chat, or load the model in LM Studio with a larger context length."
)
CHECK_NAME = _("Check the model's name and URL.")
CHECK_PROXY_NAME = _("Check the model's name in the LiteLLM proxy's configuration.")
PULL_MODEL = _("Run “ollama pull %(name)s” on the server, or choose another model.")
LOAD_IN_STUDIO = _(
    "Load a model in LM Studio, or turn on just-in-time loading, then try again."
)
WAIT_FOR_MODEL = _("Try again in a minute, or choose another model.")
CHECK_PRIVACY = _(
    "Change the privacy settings of your OpenRouter account, or choose another model."
)
CHECK_ROUTING = _(
    "Check the model's name and its provider settings at OpenRouter, or choose another model."
)
CHECK_PROXY_KEY = _("Check the provider's API key in the LiteLLM proxy.")

LOADING_SECONDS = 10.0
MAX_LOADING_SECONDS = 30.0


class ProviderResponse(NamedTuple):
    """An error as it arrived: the model's prefix, the status, and everything that was said."""

    prefix: str
    status: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One meaning of an error, recognized by its words; the first one that fits counts."""

    pattern: re.Pattern[str]
    sentence: ProviderSentence
    advice: str
    kind: type[ModelError] = ModelError
    prefixes: frozenset[str] = frozenset()  # only of these providers, if there are any
    statuses: frozenset[int] = frozenset()  # only with one of these, if there are any

    def fits(self, response: ProviderResponse) -> bool:
        return (
            (not self.prefixes or response.prefix in self.prefixes)
            and (not self.statuses or response.status in self.statuses)
            and bool(self.pattern.search(response.text))
        )

    def error(self, model: str, message: str, response: ProviderResponse) -> ModelError:
        advice = self.advice
        if advice is PULL_MODEL:
            missing = MISSING_NAME.search(response.text)
            advice = PULL_MODEL.fill(name=missing[1] if missing else model.partition("/")[2])
        error = self.kind(self.sentence.fill(model, message, response.status), advice=advice)
        if isinstance(error, ModelLoading):
            estimate = ESTIMATED_TIME.search(response.text)
            seconds = float(estimate[1]) if estimate else LOADING_SECONDS
            error.retry_after = min(seconds, MAX_LOADING_SECONDS)
        return error


def find_cause(response: ProviderResponse) -> Cause | None:
    return next((cause for cause in CAUSES if cause.fits(response)), None)


def wait_seconds(text: str) -> float | None:
    """Return how long a rate limit asks to wait, if only its words say so."""
    if delay := RETRY_DELAY.search(text):
        return float(delay[1])
    sentence = RETRY_WORDS.search(text)
    if sentence is None or not any(sentence.groups()):
        return None
    hours, minutes, seconds, milliseconds = (float(unit or 0) for unit in sentence.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


RETRY_DELAY = re.compile(r"retryDelay\W+([\d.]+)s")  # Gemini
RETRY_WORDS = re.compile(
    r"(?:re)?try (?:again )?(?:in|after) "
    r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?) ?s)?(?:(\d+(?:\.\d+)?) ?ms)?",
    re.I,
)
MISSING_NAME = re.compile(r"model \\?['\"`]([\w.:/@-]+?)\\?['\"`] not found")
ESTIMATED_TIME = re.compile(r"estimated_time\W+([\d.]+)")  # Hugging Face

OLLAMA = frozenset({"ollama", "ollama_chat"})
BLOCKED_STATUSES = frozenset({400, 403, 422})
CONTEXT_EXCEEDED = re.compile(
    r"context.?(length|window|size|limit)|maximum (context|model length|prompt length)"
    r"|prompt is too long|input is too long|too many tokens"
    r"|input token count.*exceeds|reduce (the length|your message size)",
    re.I,
)

CAUSES = (
    # Quotas. Google's words are the same for a minute and a day; only its quota id differs.
    Cause(
        pattern=re.compile(
            r"quotaId\W+\w*PerDay|free-models-per-day|tokens per day, please wait", re.I
        ),
        sentence=QUOTA_USED_UP,
        advice=WAIT_FOR_RESET,
        kind=QuotaExhausted,
    ),
    Cause(
        pattern=re.compile(r"budget_exceeded|Budget has been exceeded|ExceededBudget"),
        sentence=QUOTA_USED_UP,
        advice=RAISE_BUDGET,
        kind=QuotaExhausted,
    ),
    Cause(
        pattern=re.compile(
            r"insufficient_quota|billing_hard_limit|billing_not_active|exceeded_current_quota"
            r"|credit balance is too low|reached your specified API usage limits"
            r"|insufficient (credits?|balance|funds)|requires more credits|Key limit exceeded"
            r"|out of call volume quota|monthly included credits|calls / month"
            r"|used all available credits|doesn't have any credits"
            r"|exceeded your current quota.*limit: 0\b",
            re.I | re.S,
        ),
        sentence=QUOTA_USED_UP,
        advice=ADD_CREDIT,
        kind=QuotaExhausted,
    ),
    Cause(
        pattern=re.compile(""),
        sentence=QUOTA_USED_UP,
        advice=ADD_CREDIT,
        kind=QuotaExhausted,
        statuses=frozenset({402}),
    ),
    # Tools and images that a server or a model can't take.
    Cause(
        pattern=re.compile(r"enable-auto-tool-choice|tool-call-parser"),
        sentence=TOOLS_REJECTED,
        advice=VLLM_FLAGS,
    ),
    Cause(
        pattern=re.compile(r"requires? (the )?--jinja"),
        sentence=TOOLS_REJECTED,
        advice=LLAMA_SERVER_FLAG,
    ),
    Cause(
        pattern=re.compile(
            r"does(n't| not) support (tools|tool use|tool calling|function calling)"
            r"|tool calling\W* is not supported|No endpoints found that support tool use",
            re.I,
        ),
        sentence=TOOLS_REJECTED,
        advice=USE_REACT,
    ),
    Cause(
        pattern=re.compile(r"image input is not supported.*mmproj", re.I | re.S),
        sentence=IMAGES_REJECTED,
        advice=ADD_PROJECTOR,
    ),
    Cause(
        pattern=re.compile(
            r"does(n't| not) support (images?|image input|vision)|image input is not supported"
            r"|No endpoints found that support image input|is not a multimodal model"
            r"|missing data required for image input|images? (input )?(is|are) not supported",
            re.I,
        ),
        sentence=IMAGES_REJECTED,
        advice=CHOOSE_VISION,
    ),
    # Blocked content, which OpenRouter reports as 403.
    Cause(
        pattern=re.compile(
            r"flagged_input|requires moderation|content_policy_violation|moderation_blocked"
            r"|ResponsibleAIPolicyViolation|code\W+content_filter",
            re.I,
        ),
        sentence=REQUEST_BLOCKED,
        advice=REPHRASE,
        statuses=BLOCKED_STATUSES,
    ),
    # Models that aren't there, not yet there, or nowhere to be had.
    Cause(
        pattern=re.compile(r"No models? loaded|model_not_loaded", re.I),
        sentence=MODEL_NOT_LOADED,
        advice=LOAD_IN_STUDIO,
    ),
    Cause(
        pattern=re.compile(r"Loading model|(currently|is) loading|model is being loaded", re.I),
        sentence=MODEL_LOADING,
        advice=WAIT_FOR_MODEL,
        kind=ModelLoading,
        statuses=frozenset({500, 502, 503}),
    ),
    Cause(
        pattern=re.compile(r"try pulling it first"),
        sentence=MODEL_NOT_FOUND,
        advice=PULL_MODEL,
    ),
    Cause(
        pattern=MISSING_NAME,
        sentence=MODEL_NOT_FOUND,
        advice=PULL_MODEL,
        prefixes=OLLAMA,
        statuses=frozenset({404}),
    ),
    Cause(
        pattern=re.compile(r"matching your (data policy|guardrail)", re.I),
        sentence=NO_HOST_AVAILABLE,
        advice=CHECK_PRIVACY,
    ),
    Cause(
        pattern=re.compile(r"No allowed providers are available|No endpoints found", re.I),
        sentence=NO_HOST_AVAILABLE,
        advice=CHECK_ROUTING,
    ),
    Cause(
        pattern=re.compile(r"Invalid model name passed in"),
        sentence=MODEL_NOT_FOUND,
        advice=CHECK_PROXY_NAME,
    ),
)
# These are looked up last, because a rate limit also speaks of too many tokens.
CONTEXT_CAUSES = (
    *(
        Cause(pattern=pattern, sentence=CHAT_TOO_LONG, advice=advice, prefixes=prefixes)
        for pattern, advice, prefixes in (
            (
                re.compile(r"exceed_context_size|available context size"),
                RAISE_LLAMA_CONTEXT,
                frozenset[str](),
            ),
            (
                re.compile(
                    r"loaded with context length of only|tokens to keep from the initial prompt"
                ),
                RAISE_STUDIO_CONTEXT,
                frozenset[str](),
            ),
            (re.compile(r"maximum model length"), RAISE_VLLM_CONTEXT, frozenset[str]()),
            (CONTEXT_EXCEEDED, RAISE_VLLM_CONTEXT, frozenset({"hosted_vllm"})),
            (CONTEXT_EXCEEDED, RAISE_OLLAMA_CONTEXT, OLLAMA),
            (CONTEXT_EXCEEDED, NEW_CHAT, frozenset[str]()),
        )
    ),
    Cause(
        pattern=re.compile(""),
        sentence=CHAT_TOO_LONG,
        advice=NEW_CHAT,
        statuses=frozenset({413}),
    ),
)


def find_context_cause(response: ProviderResponse) -> Cause | None:
    return next((cause for cause in CONTEXT_CAUSES if cause.fits(response)), None)
