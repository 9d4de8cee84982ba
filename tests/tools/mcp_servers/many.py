"""An MCP server over stdio with 60 tools."""

import json
import sys

NOUNS = (
    *("invoice", "customer", "order", "product", "shipment", "warehouse", "supplier"),
    *("campaign", "article", "channel", "message", "meeting", "document", "folder"),
    *("server", "database", "release", "incident", "survey"),
)
VERBS = {"list": "List all", "get": "Get the details of one", "update": "Change one of the"}
reads, writes = {"readOnlyHint": True}, {"readOnlyHint": False}


def tool(name, description, hints, *required):
    properties = {argument: {"type": "string"} for argument in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    about = {"description": description, "inputSchema": schema, "annotations": hints}
    return {"name": name, **about}


tools = [
    tool("refund_charge", "Refund a charge fully or partially.", reads, "charge_id"),
    tool("cancel_subscription", "Cancel a subscription.", writes, "subscription_id"),
    tool("request_time_off", "Submit a time-off request.", reads, "start", "end"),
    *(
        tool(f"{verb}_{noun}s", f"{says} {noun}s.", reads, "id")
        for noun in NOUNS
        for verb, says in VERBS.items()
    ),
]


def say(id, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    request = json.loads(line)
    match request.get("method"):
        case "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "m", "version": "1"}}
            say(request["id"], {"protocolVersion": "2025-06-18", **about})
        case "tools/list":
            say(request["id"], {"tools": tools})
        case "tools/call":
            called = json.dumps(request["params"]["arguments"], ensure_ascii=False)
            text = f"{request['params']['name']} got {called}"
            say(request["id"], {"content": [{"type": "text", "text": text}]})
        case _ if "id" in request:
            say(request["id"], {})
