"""The commands that a server does."""

import sys
from argparse import Namespace

from agents.management.run_printer import RunPrinter

from . import traces
from .ask import ask, resume
from .examples import run_set
from .ingest import ingest
from .server import Server


async def run(server: Server, options: Namespace, version: str) -> None:
    match options.command:
        case "ask":
            printer = RunPrinter(
                sys.stdout, sys.stderr, as_json=options.json, is_quiet=options.quiet
            )
            if options.resume is not None:
                await resume(server, printer, options.resume)
            else:
                await ask(
                    server, printer, options.question, agent=options.agent, chat=options.chat
                )
        case "runs":
            query = " ".join(options.filter)
            await traces.list_runs(server, query, limit=options.limit, as_json=options.json)
        case "trace":
            await traces.show(server, options.run, in_browser=options.web, as_json=options.json)
        case "export":
            await traces.export(server, options.run, options.format, options.output)
        case "ingest":
            await ingest(server, options.paths, options.collection)
        case "examples":
            await run_set(
                server,
                options.set,
                agent=options.agent,
                min_score=options.min,
                as_json=options.json,
            )
        case "acp":
            from . import acp_agent

            await acp_agent.serve(server, options.agent, version)
