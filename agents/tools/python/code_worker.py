"""Runs a model's code in its own confined process, like a cell of a notebook.

It reads one JSON request from standard input, with the code and its folder. What the code
prints, what its last expression evaluates to and the traceback of an error go to standard
output as they are: nothing in it is trusted. The exit code says how the code ended.
"""

import ast
import io
import json
import linecache
import os
import sys
import sysconfig
import traceback
from types import ModuleType

CODE_NAME = "<code>"
EXIT_ERROR = 70
EXIT_MEMORY = 71


def main() -> int:
    request = json.loads(sys.stdin.buffer.read())
    code = request["code"]
    os.chdir(request["folder"])
    os.dup2(1, 2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr = sys.stdout
    sys.argv = [CODE_NAME]
    sys.orig_argv.clear()
    linecache.cache[CODE_NAME] = (len(code), None, code.splitlines(keepends=True), CODE_NAME)
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    try:
        tree = ast.parse(code, CODE_NAME)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, CODE_NAME, "exec"), module.__dict__)
        if isinstance(last, ast.Expr):
            expression = ast.Expression(last.value)
            value = eval(compile(expression, CODE_NAME, "eval"), module.__dict__)
            if value is not None:
                sys.stdout.write(f"{value!r}\n")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stdout.write(f"{ended.code}\n")
        return ended.code if isinstance(ended.code, int) else EXIT_ERROR if ended.code else 0
    except BaseException as error:
        exit_code = EXIT_MEMORY if isinstance(error, MemoryError) else EXIT_ERROR
        summary = traceback.TracebackException.from_exception(error)
        # What the code had in memory is needed for what follows.
        error.__traceback__ = None
        module.__dict__.clear()
        keep_code_frames(summary)
        sys.stdout.write(without_paths("".join(summary.format()), request["folder"]))
        return exit_code
    return 0


def keep_code_frames(summary: traceback.TracebackException | None) -> None:
    """Leave only the lines of the code itself in a traceback, and in those it came from."""
    while summary is not None:
        code_frames = [frame for frame in summary.stack if frame.filename == CODE_NAME]
        summary.stack = traceback.StackSummary.from_list(code_frames)
        for part in getattr(summary, "exceptions", None) or ():
            keep_code_frames(part)
        summary = summary.__cause__ or summary.__context__


def without_paths(text: str, folder: str) -> str:
    """Return the text without the folders of the server."""
    names = ("purelib", "platlib", "platstdlib", "stdlib")
    folders = [folder, *map(sysconfig.get_path, names), sys.prefix]
    for path in folders:
        text = text.replace(f"{path}{os.sep}", "").replace(path, "")
    return text


if __name__ == "__main__":
    sys.exit(main())
