"""Joins ES modules into one: each becomes a function that returns its exports.

It knows the imports and exports that our modules use, and rejects all others. Imports are
constants, which is right as long as modules export only functions and constants, and import
each other one way. See docs/decisions/static-bundles.md.
"""

import json
import re
from collections.abc import Callable, Iterable
from posixpath import dirname, join, normpath

IMPORT = re.compile(r'^import (?:\{([^{}]*)\} from )?"(\.[^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function\*? |class |const )(\w+)", re.MULTILINE)
OTHER = re.compile(r"^(?:import\b|export\b|await\b).*", re.MULTILINE)

# As with a script tag for each, one that fails doesn't stop the others. No module has a name
# that starts with `$`, which would hide the function.
JOINED = """\
const $modules = {{
{modules}}};
const $loaded = {{}};
function $load(name) {{
  return $loaded[name] ??= $modules[name]();
}}
for (const name of {names}) {{
  try {{
    $load(name);
  }} catch (error) {{
    reportError(error);
  }}
}}
"""


class UnsupportedModule(Exception):
    """Raised for an import or export that can't be joined."""


def join_modules(names: Iterable[str], read: Callable[[str], str]) -> str:
    """Return one script that runs these modules, in order, with all that they import."""
    functions: dict[str, str] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in functions:
            source = read(name)
            functions[name] = module_function(name, source)
            pending += imported_modules(name, source)
    modules = "".join(functions[name] for name in sorted(functions))
    return JOINED.format(modules=modules, names=json.dumps([*names]))


def imported_modules(name: str, source: str) -> list[str]:
    """Return the names of the modules that a module imports."""
    return [_resolve(name, path) for _, path in IMPORT.findall(source)]


def module_function(name: str, source: str) -> str:
    """Return a module as a property: a function that returns its exports."""

    def load_imports(match: re.Match[str]) -> str:
        call = f'$load("{_resolve(name, match[2])}");'
        return f"const {{{match[1].replace(' as ', ': ')}}} = {call}" if match[1] else call

    exports = ", ".join(exported for _, exported in EXPORT.findall(source))
    body = EXPORT.sub(r"\1\2", IMPORT.sub(load_imports, source))
    if left := OTHER.search(body):
        raise UnsupportedModule(f"{name}: {left[0]}")
    return f'"{name}"() {{\n{body}\nreturn {{ {exports} }};\n}},\n'


def _resolve(name: str, path: str) -> str:
    return normpath(join(dirname(name), path))
