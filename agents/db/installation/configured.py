"""All settings of the installation."""

from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from . import branding, contact, default_models
from .setting import Kind, Section, Setting

DAYS = _("days")
SECONDS = _("seconds")
MEGABYTES = _("MB")


def _limit(key: str, label: Promise, **overrides: Any) -> Setting[int | None]:
    """Return a quota, which is off unless set."""
    options: dict[str, Any] = {
        "default": None,
        "is_optional": True,
        "minimum": 1,
        "maximum": 10**12,
    } | overrides
    return Setting(key=key, section=Section.QUOTAS, label=label, **options)


def _switch(key: str, section: Section, label: Promise, **overrides: Any) -> Setting[bool]:
    return Setting(key=key, section=section, label=label, kind=Kind.BOOLEAN, **overrides)


def _seconds(key: str, section: Section, label: Promise, **overrides: Any) -> Setting[float]:
    options: dict[str, Any] = {
        "kind": Kind.NUMBER,
        "unit": SECONDS,
        "minimum": 0.1,
        "maximum": 86_400,
    } | overrides
    return Setting(key=key, section=section, label=label, **options)


def _program_limit(key: str, label: Promise, **overrides: Any) -> Setting[int | None]:
    """Return what an MCP server on this machine may use."""
    options: dict[str, Any] = {"is_optional": True, "maximum": 10**6} | overrides
    return Setting(key=key, section=Section.TOOLS, label=label, **options)


CONCURRENT_RUNS = _limit(
    "user_runs",
    _("Concurrent runs per user"),
    help=_("At the limit, users must wait for a run to finish or stop one."),
    maximum=10_000,
    environment="user_runs",
)
MESSAGES_PER_MINUTE = _limit(
    "user_messages",
    _("Messages per minute and user"),
    maximum=10_000,
    environment="user_messages",
)
API_REQUESTS_PER_MINUTE: Setting[int] = Setting(
    key="api_requests",
    section=Section.QUOTAS,
    label=_("API requests per minute and key"),
    default=600,
    minimum=1,
    maximum=100_000,
    help=_("For keys without a value of their own. Counted by each web process."),
)
RUNS_PER_DAY = _limit("quota_runs_day", _("Runs per day"))
RUNS_PER_MONTH = _limit("quota_runs_month", _("Runs per month"))
MESSAGES_PER_DAY = _limit("quota_messages_day", _("Messages per day"))
MESSAGES_PER_MONTH = _limit("quota_messages_month", _("Messages per month"))
TOKENS_PER_DAY = _limit(
    "user_tokens",
    _("Tokens per day"),
    help=_("Input and output tokens of a user's runs and chat titles."),
    environment="user_tokens",
)
TOKENS_PER_MONTH = _limit("quota_tokens_month", _("Tokens per month"))
COST_PER_DAY = _limit(
    "quota_cost_day",
    _("Cost per day (USD)"),
    kind=Kind.MONEY,
    maximum=10**15,
    help=_("Models without a known price can't be used while this limit applies."),
)
COST_PER_MONTH = _limit(
    "quota_cost_month", _("Cost per month (USD)"), kind=Kind.MONEY, maximum=10**15
)

INVITATION_DAYS: Setting[int] = Setting(
    key="invitation_days",
    section=Section.PEOPLE,
    label=_("Invitations expire after"),
    unit=DAYS,
    default=7,
    minimum=1,
    maximum=365,
)
MAX_INVITATION_USES: Setting[int] = Setting(
    key="invitation_uses",
    section=Section.PEOPLE,
    label=_("Max uses of an invitation link"),
    default=50,
    minimum=1,
    maximum=10_000,
)
CREATE_SSO_ACCOUNTS = _switch(
    "oidc_create",
    Section.PEOPLE,
    _("Create accounts at the first single sign-on"),
    help=_("When off, only invited users and existing accounts can sign in."),
    default=True,
    environment="oidc_create",
)
SELF_ERASURE = _switch(
    "self_erasure",
    Section.PEOPLE,
    _("Users can delete their own account"),
    default=False,
    environment="self_erasure",
)
PERSONAL_API_KEYS = _switch(
    "personal_api_keys",
    Section.PEOPLE,
    _("Personal API keys"),
    help=_("Users can make API keys. Turning this off also stops existing personal keys."),
    default=True,
)
API_KEY_DAYS: Setting[int | None] = Setting(
    key="api_key_days",
    section=Section.PEOPLE,
    label=_("API keys expire at the latest after"),
    help=_("Applies to new keys. Empty: keys can be made that never expire."),
    unit=DAYS,
    default=None,
    is_optional=True,
    minimum=1,
    maximum=3_650,
)
SUGGEST_USERS = _switch(
    "suggest_users",
    Section.PEOPLE,
    _("Suggest other users while typing"),
    help=_("In share dialogs. Users can then find out who else has an account."),
    default=False,
    environment="suggest_users",
)
APP_REGISTRATION = _switch(
    "app_registration",
    Section.PEOPLE,
    _("Apps can register themselves"),
    help=_("Each user decides what an app can do. When off, only known apps can be connected."),
    default=True,
)
SOCKETS: Setting[int] = Setting(
    key="user_sockets",
    section=Section.PEOPLE,
    label=_("Open pages per user"),
    help=_("Live connections per user and process, about one per browser tab."),
    default=20,
    minimum=1,
    maximum=100_000,
    environment="user_sockets",
)

GENERATED_TITLES = _switch(
    "generated_titles",
    Section.CHAT,
    _("Generate chat titles"),
    help=_("The agent's model names each chat. When off, the title is the first message."),
    default=True,
    environment="generated_titles",
)
PUBLIC_LINKS = _switch(
    "public_links",
    Section.CHAT,
    _("Public links"),
    help=_(
        "Links to chats and runs that work without an account. Turning this off "
        "disables existing links."
    ),
    default=True,
    environment="public_links",
)
CHAT_MEMBERS: Setting[int] = Setting(
    key="chat_members",
    section=Section.CHAT,
    label=_("Max members of a shared chat"),
    default=100,
    minimum=1,
    maximum=1_000,
)
CHAT_LINKS: Setting[int] = Setting(
    key="chat_links",
    section=Section.CHAT,
    label=_("Max public links per chat"),
    default=10,
    minimum=1,
    maximum=100,
)

USER_FILES_MB: Setting[int] = Setting(
    key="user_files_mb",
    section=Section.FILES,
    label=_("Storage per user"),
    help=_("Uploaded files in total. 0: no limit."),
    unit=MEGABYTES,
    default=2_000,
    environment="user_files_mb",
)
DOCUMENT_MB: Setting[int] = Setting(
    key="document_mb",
    section=Section.FILES,
    label=_("Max size of a document"),
    help=_("Applies to files in the library."),
    unit=MEGABYTES,
    default=50,
    minimum=1,
    maximum=200,
)
ATTACHMENT_MB: Setting[int] = Setting(
    key="attachment_mb",
    section=Section.FILES,
    label=_("Max size of a file in a message"),
    unit=MEGABYTES,
    default=50,
    minimum=1,
    maximum=200,
)
MESSAGE_FILES: Setting[int] = Setting(
    key="message_files",
    section=Section.FILES,
    label=_("Max files per message"),
    default=10,
    minimum=1,
    maximum=50,
)
IMPORT_MB: Setting[int] = Setting(
    key="import_mb",
    section=Section.FILES,
    label=_("Max size of a chat import"),
    unit=MEGABYTES,
    default=500,
    minimum=1,
    maximum=10_000,
    environment="import_mb",
)

SEARCH_MIN_SCORE: Setting[float] = Setting(
    key="search_min_score",
    section=Section.SEARCH,
    label=_("Minimum certainty"),
    help=_("Below this, a search reports that nothing relevant was found. 0 returns all."),
    kind=Kind.NUMBER,
    default=0.04,
    maximum=1,
    environment="search_min_score",
)
LIBRARY_RESULTS: Setting[int] = Setting(
    key="library_results",
    section=Section.SEARCH,
    label=_("Passages per library search"),
    help=_(
        "Applies to the library's search page. Agents' search has its own setting under Tools."
    ),
    default=20,
    minimum=1,
    maximum=100,
)
SITEMAP_PAGES: Setting[int] = Setting(
    key="sitemap_pages",
    section=Section.SEARCH,
    label=_("Pages per sitemap"),
    help=_("The default in the form for web pages."),
    default=200,
    minimum=1,
    maximum=1_000,
)

HISTORY_MESSAGES: Setting[int] = Setting(
    key="history_messages",
    section=Section.MEMORY,
    label=_("Max messages sent to the model"),
    help=_("Per run. Older messages are left out. Agents can have lower limits."),
    unit=_("messages"),
    default=400,
    minimum=20,
    maximum=10_000,
)
RECALLED_MEMORIES: Setting[int] = Setting(
    key="recalled_memories",
    section=Section.MEMORY,
    label=_("Memories per message"),
    help=_("Memories about the user that are added to a message, besides preferences."),
    default=8,
    maximum=50,
)
MEMORY_TOKENS: Setting[int] = Setting(
    key="memory_tokens",
    section=Section.MEMORY,
    label=_("Max tokens of memories per message"),
    unit=_("tokens"),
    default=600,
    maximum=20_000,
)
MAX_MEMORIES: Setting[int] = Setting(
    key="max_memories",
    section=Section.MEMORY,
    label=_("Max memories per user or project"),
    default=500,
    minimum=1,
    maximum=10_000,
)
EXPERIENCE_DAYS: Setting[int] = Setting(
    key="experience_days",
    section=Section.MEMORY,
    label=_("Lessons expire after"),
    help=_("Starts over each time a lesson helps. 0: never."),
    unit=_("days"),
    default=180,
    maximum=3_650,
)
MAX_EXPERIENCES: Setting[int] = Setting(
    key="max_experiences",
    section=Section.MEMORY,
    label=_("Max lessons per agent and user"),
    help=_("When the limit is reached, the least useful one is deleted."),
    default=200,
    minimum=1,
    maximum=500,
)

MODEL_RETRIES: Setting[int] = Setting(
    key="model_retries",
    section=Section.MODELS,
    label=_("Max retries of a model call"),
    default=2,
    maximum=10,
    environment="model_retries",
)
MODEL_SLOW = _seconds(
    "model_slow_seconds",
    Section.MODELS,
    _("Show “waiting” after"),
    help=_("When the model hasn't started to respond."),
    default=10.0,
    environment="model_slow_seconds",
)
MODEL_FIRST = _seconds(
    "model_first_seconds",
    Section.MODELS,
    _("Timeout for the first token"),
    help=_("5 minutes for your own servers (Ollama, llama.cpp, LM Studio, vLLM), unless set."),
    default=60.0,
    environment="model_first_seconds",
)
MODEL_BETWEEN = _seconds(
    "model_between_seconds",
    Section.MODELS,
    _("Timeout between tokens"),
    default=30.0,
    environment="model_between_seconds",
)
MODEL_WHOLE = _seconds(
    "model_whole_seconds",
    Section.MODELS,
    _("Timeout for a whole response"),
    default=600.0,
    environment="model_whole_seconds",
)
CIRCUIT_FAILURES: Setting[int] = Setting(
    key="circuit_failures",
    section=Section.MODELS,
    label=_("Circuit breaker opens after"),
    help=_("Consecutive failures of a model or tool before it's paused."),
    unit=_("failures"),
    default=5,
    minimum=1,
    maximum=100,
)
CIRCUIT_SECONDS = _seconds(
    "circuit_seconds",
    Section.MODELS,
    _("First pause of a circuit breaker"),
    help=_("Doubles each time, up to 10 minutes."),
    default=30.0,
    minimum=1,
    maximum=600,
)

TOOL_RETRIES: Setting[int] = Setting(
    key="tool_retries",
    section=Section.TOOLS,
    label=_("Max retries of a tool call"),
    help=_("Irreversible calls are never retried."),
    default=2,
    maximum=10,
)
SENT_TOOLS: Setting[int] = Setting(
    key="sent_tools",
    section=Section.TOOLS,
    label=_("Send all tools up to"),
    help=_("An agent with more tools sends those that fit the message, up to 25."),
    unit=_("tools"),
    default=30,
    minimum=1,
    maximum=1_000,
)
SENT_TOOL_TOKENS: Setting[int] = Setting(
    key="sent_tool_tokens",
    section=Section.TOOLS,
    label=_("Send all tools up to"),
    help=_(
        "Total length of their definitions. Above it, only tools that fit the message are sent."
    ),
    unit=_("tokens"),
    default=10_000,
    minimum=500,
    maximum=1_000_000,
)
DATABASE_ROWS: Setting[int] = Setting(
    key="database_rows",
    section=Section.TOOLS,
    label=_("Max rows per database query"),
    help=_("Where a database has no limit of its own."),
    default=100,
    minimum=1,
    maximum=10_000,
)
DATABASE_SECONDS = _seconds(
    "database_seconds",
    Section.TOOLS,
    _("Timeout of a database query"),
    default=5.0,
    maximum=300,
)
PROGRAM_MEMORY = _program_limit(
    "program_memory_mb",
    _("Max memory per program"),
    help=_("MCP servers on this machine, with everything they start."),
    unit=MEGABYTES,
    default=2048,
    minimum=64,
)
PROGRAM_CPU = _program_limit(
    "program_cpu_seconds",
    _("Max CPU time per program in 5 minutes"),
    help=_("Stops programs that hang in a loop. One busy core uses 300 s."),
    unit=SECONDS,
    default=240,
    minimum=5,
)
PROGRAM_FILE = _program_limit(
    "program_file_mb",
    _("Max file size per program"),
    unit=MEGABYTES,
    default=2048,
    minimum=1,
)
PROGRAM_PROCESSES = _program_limit(
    "program_processes",
    _("Processes of a program"),
    default=100,
    minimum=5,
)
CACHE_ENTRIES: Setting[int] = Setting(
    key="cache_entries",
    section=Section.TOOLS,
    label=_("Max cached results"),
    help=_("Tool results and model responses. Those unused for longest are deleted first."),
    default=20_000,
    minimum=100,
    maximum=1_000_000,
)
CACHE_MB: Setting[int] = Setting(
    key="cache_mb",
    section=Section.TOOLS,
    label=_("Max size of cached results"),
    unit=_("MB"),
    default=256,
    minimum=1,
    maximum=100_000,
)

RUN_RETENTION_DAYS: Setting[int | None] = Setting(
    key="run_retention_days",
    section=Section.RETENTION,
    label=_("Delete chats and runs after"),
    help=_("Runs in review or saved as examples stay. Empty: never."),
    unit=DAYS,
    default=None,
    is_optional=True,
    minimum=1,
    maximum=36_500,
    environment="run_retention_days",
)
AUDIT_RETENTION_DAYS: Setting[int | None] = Setting(
    key="audit_retention_days",
    section=Section.RETENTION,
    label=_("Delete audit log entries after"),
    help=_("Empty: never."),
    unit=DAYS,
    default=None,
    is_optional=True,
    minimum=1,
    maximum=36_500,
    environment="audit_retention_days",
)

SETTINGS: dict[str, Setting[Any]] = {
    setting.key: setting for setting in list(globals().values()) if isinstance(setting, Setting)
}
SETTINGS |= {contact.CONTACT.key: contact.CONTACT} | branding.SETTINGS
SETTINGS |= default_models.SETTINGS
