"""The fields that other programs use, and what they are called here."""

from ..configuration.config import Transport

# Where programs keep their servers, the most specific path first.
SERVER_PATHS = (
    ("mcpServers",),
    ("amp.mcpServers",),
    ("context_servers",),
    ("mcp_servers",),
    ("mcp", "servers"),
    ("mcp", "mcpServers"),
    ("servers",),
    ("extensions",),
    ("mcp",),
)
TRANSPORTS: dict[str, Transport] = {
    **dict.fromkeys(("stdio", "local"), "stdio"),
    **dict.fromkeys(("http", "streamable-http", "streamable_http", "streamablehttp"), "http"),
    **dict.fromkeys(("remote", "url"), "http"),
    "sse": "sse",
}
ALIASES = {
    **dict.fromkeys(("httpUrl", "serverUrl", "uri", "endpoint"), "url"),
    **dict.fromkeys(("environment", "envs"), "env"),
    **dict.fromkeys(("http_headers", "requestHeaders"), "headers"),
    **dict.fromkeys(("tool_timeout_sec", "request_timeout"), "timeout"),
    **dict.fromkeys(("startup_timeout_sec", "startupTimeout"), "initTimeout"),
    "cmd": "command",
    "arguments": "args",
    "transport": "type",
}
FIELDS = {
    "command",
    "args",
    "env",
    "url",
    "headers",
    "type",
    "folders",
    "timeout",
    "initTimeout",
    "disabled",
    "enabled",
}
# Names and pictures, which need no note.
DECORATION = {
    "$schema",
    "bundled",
    "chatMenu",
    "description",
    "displayName",
    "display_name",
    "gallery",
    "icon",
    "iconPath",
    "id",
    "name",
    "note",
    "serverInstructions",
    "source",
    "stderr",
    "title",
    "version",
}
APPROVAL_FIELDS = {"alwaysAllow", "alwaysallow", "autoApprove", "trust", "autoapprove"}
TOOL_FIELDS = {
    "allowedTools",
    "available_tools",
    "disabledTools",
    "disabled_tools",
    "enabledTools",
    "enabled_tools",
    "excludeTools",
    "includeTools",
    "tools",
}
FILE_FIELDS = {"envFile", "env_file", "headersHelper"}
ENTRY_FIELDS = {"command", "cmd", "url", "httpUrl", "serverUrl", "uri", "endpoint"}
