"""What is asked about a call: a verb and an object, as a question."""

from collections.abc import Callable, Mapping

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool
from agents.memory import RememberTool
from agents.models import Approval, ToolRegistration
from agents.models.catalog.databases import SAMPLE_TOOL
from agents.runs.projection import decode_json
from agents.tools.calculator import CalculatorTool
from agents.tools.images import DescribeImageTool, GenerateImageTool
from agents.tools.mcp.definition import SEPARATOR
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool

from ..markdown import reveal_invisible

OWN_TOOLS: Mapping[str, Callable[[], str]] = {
    SAMPLE_TOOL: lambda: _("Run this query on the sample database?"),
    CalculatorTool.name: lambda: _("Calculate this?"),
    SearchTool.name: lambda: _("Search the library for this?"),
    ReadDocumentTool.name: lambda: _("Read this document?"),
    RememberTool.name: lambda: _("Save this to memory?"),
    GenerateImageTool.name: lambda: _("Generate this image?"),
    DescribeImageTool.name: lambda: _("Describe this image?"),
}


def call_heading(approval: Approval, tool: ToolRegistration | None) -> str:
    """Return the question about a call of this tool, as far as it is still registered."""
    name = approval.tool
    if approval.is_unknown:
        return _("Did %(tool)s finish?") % {"tool": name}
    if approval.is_client:
        return _("The program calls %(tool)s") % {"tool": name}
    if approval.is_sharing:
        arguments = decode_json(approval.arguments)
        group = str(arguments.get("role", "")) if isinstance(arguments, dict) else ""
        params = {"group": reveal_invisible(group)}
        return _("Send this question to the group “%(group)s”?") % params
    is_handoff = name.startswith(HANDOFF_PREFIX) and name != AskPersonTool.name
    if tool is None and is_handoff:
        return _("Hand off to %(agent)s?") % {"agent": name.removeprefix(HANDOFF_PREFIX)}
    if name in OWN_TOOLS and (tool is None or tool.source == ToolRegistration.Source.OWN):
        return OWN_TOOLS[name]()
    params = {"tool": tool_title(name)}
    if tool is not None and tool.connection is not None:
        params["database"] = tool.connection.name.replace("_", " ")
        return _("Run this query on the %(database)s database?") % params
    if tool is not None and tool.server is not None:
        params["server"] = tool.server.name
        return _("Run “%(tool)s” on %(server)s?") % params
    return _("Run “%(tool)s”?") % params


def tool_title(name: str) -> str:
    """Return a tool's name as words, without its server: mail__send_letter is Send letter."""
    words = name.rpartition(SEPARATOR)[2].replace("_", " ").strip()
    return reveal_invisible(capfirst(words) or name)
