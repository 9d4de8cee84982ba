"""The checks, in the order of the page."""

from tests.compat.checks import (  # noqa: F401, I001
    mcp,
    mcp_server,
    oauth,
    rest,
    a2a,
    openai_clients,
    chat_products,
    n8n,
    ci,
    editors,
    webhooks,
    clients,
    identity,
    models,
    monitors,
)

AREAS = {
    "MCP servers",
    "Conformance",
    "Ways in",
    "MCP configurations",
    "Identity providers",
    "Model servers",
    "Monitors",
}
