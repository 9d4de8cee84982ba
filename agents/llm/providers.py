"""Model providers: prefix, URL, key and quirks.

Those with OpenAI's API, Anthropic, Gemini and Ollama can be called without LiteLLM. URLs, names
and quirks match LiteLLM's tables; tests keep the two in sync.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

OwnApi = Literal["ollama", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """How a server differs from OpenAI's API."""

    renamed: Mapping[str, str] = field(default_factory=dict)  # parameters
    dropped: frozenset[str] = frozenset()  # rejected parameters
    tool_choices: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, Any] = field(default_factory=dict)  # required parameters
    takes_stream_options: bool = True
    streams_forms: bool = True  # whether a reply with `response_format` can be streamed
    takes_thoughts: bool = True  # whether messages may contain reasoning
    takes_names: bool = True  # whether messages may contain a name
    takes_user_after_tool: bool = True  # whether a user's message may follow a result
    call_ids: str = ""  # pattern of accepted call ids
    schemas_without: frozenset[str] = frozenset()  # rejected keywords of JSON Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProvider:
    """A provider; its models are named `prefix/name`, and `model` is its default.

    `keys` and `addresses` are environment variables, of which the first that is set counts.
    `by_name` are quirks of some of its models.
    """

    prefix: str
    label: str
    keys: tuple[str, ...] = ()
    model: str = ""
    speaks_openai: bool = True
    base_url: str | None = None
    addresses: tuple[str, ...] = ()
    path: str = ""  # required suffix of every address
    own_api: OwnApi | None = None  # called directly instead of OpenAI's
    needs_key: bool = True
    is_self_hosted: bool = False
    quirks: Quirks = Quirks()
    by_name: tuple[tuple[re.Pattern[str], Quirks], ...] = ()
    elsewhere: re.Pattern[str] | None = None  # models only available by another API

    @property
    def is_direct(self) -> bool:
        """Whether it can be called without LiteLLM."""
        return self.speaks_openai or self.own_api is not None

    def quirks_for(self, name: str) -> Quirks:
        special = (quirks for pattern, quirks in self.by_name if pattern.search(name))
        return next(special, self.quirks)


# Reasoning models accept no sampling parameters, and count reasoning as output.
REASONING_QUIRKS = Quirks(
    renamed={"max_tokens": "max_completion_tokens"},
    dropped=frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"}),
)
NEW_REASONING_QUIRKS = Quirks(
    renamed=REASONING_QUIRKS.renamed, dropped=REASONING_QUIRKS.dropped | {"stop", "logit_bias"}
)
GROK_QUIRKS = Quirks(dropped=frozenset({"stop", "frequency_penalty"}), takes_names=False)

PROVIDERS: tuple[ModelProvider, ...] = (
    ModelProvider(
        prefix="anthropic",
        label="Anthropic",
        keys=("ANTHROPIC_API_KEY",),
        model="anthropic/claude-sonnet-5",
        speaks_openai=False,
        base_url="https://api.anthropic.com",
        addresses=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        own_api="anthropic",
        # LiteLLM emulates their structured output by a tool.
        elsewhere=re.compile(r"^claude-(instant|[23][-.]|(opus|sonnet)-4-(0$|2025))"),
    ),
    ModelProvider(
        prefix="openai",
        label="OpenAI",
        keys=("OPENAI_API_KEY",),
        model="openai/gpt-6.1-sol",
        base_url="https://api.openai.com/v1",
        addresses=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        by_name=(
            (re.compile(r"^o\d"), REASONING_QUIRKS),
            (re.compile(r"^gpt-[5-9](?!-chat)"), NEW_REASONING_QUIRKS),
        ),
        # From 5.4 on this API rejects tools while the model reasons.
        elsewhere=re.compile(r"^gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!\d)"),
    ),
    ModelProvider(
        prefix="gemini",
        label="Gemini",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        model="gemini/gemini-3.8-flash",
        speaks_openai=False,
        base_url="https://generativelanguage.googleapis.com/v1beta",
        addresses=("GEMINI_API_BASE",),
        own_api="gemini",
        # Other families have no system prompt or tools, or reply with images or sound.
        elsewhere=re.compile(
            r"^(?!gemini-)|.*(gemma|image|tts|audio|live|omni|robotics|computer)"
        ),
    ),
    ModelProvider(
        prefix="azure",
        label="Azure OpenAI",
        keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_AD_TOKEN"),
        speaks_openai=False,
        addresses=("AZURE_API_BASE",),
    ),
    ModelProvider(
        prefix="bedrock",
        label="Amazon Bedrock",
        keys=("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"),
        speaks_openai=False,
        needs_key=False,  # a machine at AWS may have a role
    ),
    ModelProvider(
        prefix="openrouter",
        label="OpenRouter",
        keys=("OPENROUTER_API_KEY", "OR_API_KEY"),
        model="openrouter/~anthropic/claude-sonnet-latest",
        base_url="https://openrouter.ai/api/v1",
        addresses=("OPENROUTER_API_BASE",),
        quirks=Quirks(added={"usage": {"include": True}}),
    ),
    ModelProvider(
        prefix="mistral",
        label="Mistral",
        keys=("MISTRAL_API_KEY",),
        model="mistral/mistral-large-4",
        base_url="https://api.mistral.ai/v1",
        path="/v1",
        quirks=Quirks(
            renamed={"max_completion_tokens": "max_tokens", "seed": "random_seed"},
            tool_choices={"required": "any"},
            takes_stream_options=False,
            takes_thoughts=False,
            takes_user_after_tool=False,
            call_ids=r"[A-Za-z0-9]{9}",
            schemas_without=frozenset({"$schema", "$id", "strict"}),
        ),
    ),
    ModelProvider(
        prefix="groq",
        label="Groq",
        keys=("GROQ_API_KEY",),
        model="groq/openai/gpt-oss-120b",
        base_url="https://api.groq.com/openai/v1",
        addresses=("GROQ_API_BASE",),
        quirks=Quirks(takes_thoughts=False, streams_forms=False),
    ),
    ModelProvider(
        prefix="deepseek",
        label="DeepSeek",
        keys=("DEEPSEEK_API_KEY",),
        model="deepseek/deepseek-v4-pro",
        base_url="https://api.deepseek.com/beta",
        addresses=("DEEPSEEK_API_BASE",),
    ),
    ModelProvider(
        prefix="xai",
        label="xAI",
        keys=("XAI_API_KEY",),
        model="xai/grok-4.7",
        base_url="https://api.x.ai/v1",
        addresses=("XAI_API_BASE",),
        quirks=Quirks(takes_names=False),
        by_name=((re.compile(r"grok-3-mini|grok-4|grok-code-fast"), GROK_QUIRKS),),
    ),
    ModelProvider(
        prefix="together_ai",
        label="Together AI",
        keys=("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY"),
        base_url="https://api.together.ai/v1",
        addresses=("TOGETHER_AI_API_BASE",),
    ),
    ModelProvider(
        prefix="cerebras",
        label="Cerebras",
        keys=("CEREBRAS_API_KEY",),
        base_url="https://api.cerebras.ai/v1",
        addresses=("CEREBRAS_API_BASE",),
        quirks=Quirks(dropped=frozenset({"parallel_tool_calls"}), takes_stream_options=False),
    ),
    ModelProvider(
        prefix="nvidia_nim",
        label="NVIDIA NIM",
        keys=("NVIDIA_NIM_API_KEY",),
        base_url="https://integrate.api.nvidia.com/v1",
        addresses=("NVIDIA_NIM_API_BASE",),
        quirks=Quirks(takes_stream_options=False),
    ),
    ModelProvider(
        prefix="nebius",
        label="Nebius",
        keys=("NEBIUS_API_KEY",),
        base_url="https://api.studio.nebius.ai/v1",
        addresses=("NEBIUS_API_BASE",),
    ),
    ModelProvider(
        prefix="litellm_proxy",
        label="LiteLLM Proxy",
        keys=("LITELLM_PROXY_API_KEY",),
        addresses=("LITELLM_PROXY_API_BASE",),
        needs_key=False,
    ),
    ModelProvider(
        prefix="hosted_vllm",
        label="vLLM",
        keys=("HOSTED_VLLM_API_KEY",),
        addresses=("HOSTED_VLLM_API_BASE",),
        needs_key=False,
        is_self_hosted=True,
        quirks=Quirks(schemas_without=frozenset({"additionalProperties", "strict"})),
    ),
    ModelProvider(
        prefix="lm_studio",
        label="LM Studio",
        keys=("LM_STUDIO_API_KEY",),
        base_url="http://127.0.0.1:1234/v1",
        addresses=("LM_STUDIO_API_BASE",),
        needs_key=False,
        is_self_hosted=True,
    ),
    ModelProvider(
        prefix="llamafile",
        label="llama.cpp",
        keys=("LLAMAFILE_API_KEY",),
        base_url="http://127.0.0.1:8080/v1",
        addresses=("LLAMAFILE_API_BASE",),
        needs_key=False,
        is_self_hosted=True,
    ),
    *(
        ModelProvider(
            prefix=prefix,
            label="Ollama",
            keys=("OLLAMA_API_KEY",),
            base_url="http://localhost:11434",
            addresses=("OLLAMA_API_BASE",),
            own_api="ollama",
            needs_key=False,
            is_self_hosted=True,
        )
        for prefix in ("ollama", "ollama_chat")
    ),
)
# Called through LiteLLM, with only a key and possibly an address. A provider is listed once a
# test has verified that LiteLLM sends it no other secret of the environment and doesn't block
# the event loop.
HOSTED_PROVIDERS = {
    "ai21_chat": ("AI21", "AI21_API_KEY"),
    "aiml": ("AI/ML API", "AIML_API_KEY"),
    "baseten": ("Baseten", "BASETEN_API_KEY"),
    "chutes": ("Chutes", "CHUTES_API_KEY"),
    "codestral": ("Codestral", "CODESTRAL_API_KEY"),
    "cohere": ("Cohere", "COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("Cohere", "COHERE_API_KEY", "CO_API_KEY"),
    "cometapi": ("CometAPI", "COMETAPI_KEY", "COMETAPI_API_KEY"),
    "dashscope": ("DashScope", "DASHSCOPE_API_KEY"),
    "deepinfra": ("DeepInfra", "DEEPINFRA_API_KEY"),
    "featherless_ai": ("Featherless", "FEATHERLESS_AI_API_KEY"),
    "fireworks_ai": ("Fireworks", "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
    "friendliai": ("FriendliAI", "FRIENDLIAI_API_KEY", "FRIENDLI_TOKEN"),
    "github": ("GitHub Models", "GITHUB_API_KEY"),
    "hyperbolic": ("Hyperbolic", "HYPERBOLIC_API_KEY"),
    "inception": ("Inception", "INCEPTION_API_KEY"),
    "lambda_ai": ("Lambda", "LAMBDA_API_KEY"),
    "meta_llama": ("Meta Llama", "LLAMA_API_KEY"),
    "minimax": ("MiniMax", "MINIMAX_API_KEY"),
    "modelscope": ("ModelScope", "MODELSCOPE_API_KEY"),
    "moonshot": ("Moonshot", "MOONSHOT_API_KEY"),
    "morph": ("Morph", "MORPH_API_KEY"),
    "novita": ("Novita", "NOVITA_API_KEY"),
    "nscale": ("Nscale", "NSCALE_API_KEY"),
    "ovhcloud": ("OVHcloud", "OVHCLOUD_API_KEY"),
    "perplexity": ("Perplexity", "PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "poe": ("Poe", "POE_API_KEY"),
    "publicai": ("PublicAI", "PUBLICAI_API_KEY"),
    "sambanova": ("SambaNova", "SAMBANOVA_API_KEY"),
    "scaleway": ("Scaleway", "SCW_SECRET_KEY"),
    "synthetic": ("Synthetic", "SYNTHETIC_API_KEY"),
    "tencent": ("Tencent", "TENCENT_API_KEY"),
    "v0": ("v0", "V0_API_KEY"),
    "vercel_ai_gateway": ("Vercel AI Gateway", "VERCEL_AI_GATEWAY_API_KEY"),
    "volcengine": ("Volcengine", "VOLCENGINE_API_KEY", "ARK_API_KEY"),
    "wandb": ("W&B Inference", "WANDB_API_KEY"),
    "xiaomi_mimo": ("Xiaomi MiMo", "XIAOMI_MIMO_API_KEY"),
    "zai": ("Z.ai", "ZAI_API_KEY"),
}
ENDPOINT_PROVIDERS = {
    "azure_ai": ("Azure AI", "AZURE_AI_API_BASE", "AZURE_AI_API_KEY"),
    "heroku": ("Heroku", "HEROKU_API_BASE", "HEROKU_API_KEY"),
    "snowflake": ("Snowflake", "SNOWFLAKE_API_BASE", "SNOWFLAKE_JWT"),
}
PROVIDERS += (
    *(
        ModelProvider(prefix=prefix, label=label, keys=tuple(keys), speaks_openai=False)
        for prefix, (label, *keys) in HOSTED_PROVIDERS.items()
    ),
    *(
        ModelProvider(
            prefix=prefix, label=label, addresses=(address,), keys=(key,), speaks_openai=False
        )
        for prefix, (label, address, key) in ENDPOINT_PROVIDERS.items()
    ),
    # The machine may have a role, so these need no key.
    *(
        ModelProvider(
            prefix=prefix, label="Amazon SageMaker", speaks_openai=False, needs_key=False
        )
        for prefix in ("sagemaker", "sagemaker_chat")
    ),
    ModelProvider(prefix="vertex_ai", label="Vertex AI", speaks_openai=False, needs_key=False),
)
PROVIDERS_BY_PREFIX = {provider.prefix: provider for provider in PROVIDERS}


def find_provider(model: str) -> ModelProvider | None:
    return PROVIDERS_BY_PREFIX.get(model.partition("/")[0]) if "/" in model else None


def first_env(names: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the first of these variables that is set, with its value."""
    for name in names:
        if value := environ.get(name, "").strip():
            return name, value
    return "", ""
