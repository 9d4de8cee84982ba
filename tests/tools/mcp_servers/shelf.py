"""An MCP server over stdio whose resources are in a JSON file that a test writes."""

import base64
import json
import sys
from pathlib import Path


def say(id, **answer):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **answer}) + "\n")
    sys.stdout.flush()


def list_resources(shelf, cursor):
    page = int(cursor or 0)
    if shelf.get("endless"):
        return {"resources": [], "nextCursor": str(page + 1)}
    pages = shelf["pages"]
    more = {"nextCursor": str(page + 1)} if page + 1 < len(pages) else {}
    return {"resources": pages[page], **more}


def read(shelf, uri):
    content = shelf["contents"][uri]
    if isinstance(content, int):  # so many bytes
        content = "x" * content
    if content.startswith("base64:"):
        blob = base64.b64encode(content.removeprefix("base64:").encode()).decode()
        return {"contents": [{"uri": uri, "blob": blob}]}
    return {"contents": [{"uri": uri, "text": content}]}


for line in sys.stdin:
    request = json.loads(line)
    shelf = json.loads(Path(sys.argv[1]).read_text())
    params = request.get("params") or {}
    match request.get("method"):
        case "initialize":
            info = {"name": "shelf", "version": "1"}
            about = {"capabilities": {"tools": {}, "resources": {}}, "serverInfo": info}
            say(request["id"], result={"protocolVersion": "2025-06-18", **about})
        case "tools/list":
            say(request["id"], result={"tools": []})
        case "resources/list":
            say(request["id"], result=list_resources(shelf, params.get("cursor")))
        case "resources/read":
            try:
                say(request["id"], result=read(shelf, params["uri"]))
            except KeyError:
                say(request["id"], error={"code": -32002, "message": "Resource not found"})
        case _ if "id" in request:
            say(request["id"], result={})
