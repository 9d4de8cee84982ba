"""The MCP server at `/mcp`: agents and workflows are tools, documents and runs resources.

`endpoint` is what the web process imports; it loads the rest, and the SDK, with the first
request.
"""
