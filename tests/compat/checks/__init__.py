"""The checks, in the order of the page."""

from tests.compat.checks import mcp, clients, identity, models, monitors  # noqa: F401, I001

AREAS = {
    "MCP servers",
    "MCP configurations",
    "Identity providers",
    "Model servers",
    "Monitors",
}
