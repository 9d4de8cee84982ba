"""The rows of a table as the items of a list: by the names of columns, then by their kinds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .known import is_same, name_words
from .parts import Part, Parts, fields, kind
from .rows import Rows, is_number
from .schema import singular
from .single import NOTHING, fitting

# Names of lists that say nothing of what is in them.
_SAYS_NOTHING = "row item entry result value name list data record figure number"
_ANY = frozenset(_SAYS_NOTHING.split())


def items(part: Any, name: str, table: Rows, parts: Parts) -> Iterator[Any]:
    """What a list of this name has in it, if it is this table."""
    for choice in parts.choices(part):
        is_object = kind(choice) == "object"
        found = _objects(choice, table, parts) if is_object else _cells(choice, name, table)
        if values := [value for value in found if value is not NOTHING]:
            yield from values
            return


def _objects(part: Part, table: Rows, parts: Parts) -> Iterator[Any]:
    columns = _columns(part, table, parts)
    for row in table.rows if columns else ():
        yield _object(part, {name: row[at] for name, at in columns.items()}, parts)


def _object(part: Part, cells: Mapping[str, Any], parts: Parts) -> Any:
    """A row as an object; nothing where a cell that must be there does not fit."""
    known, required = fields(part), part.get("required", ())
    values = {name: _cell(known[name], cell, parts) for name, cell in cells.items()}
    found = {name: value for name, value in values.items() if value is not NOTHING}
    missing = [name for name in required if name not in found]
    if not all(parts.may_be_null(known[name]) for name in missing):
        return NOTHING
    return {name: found.get(name) for name in known if name in found or name in required}


def _cell(part: Any, cell: Any, parts: Parts) -> Any:
    values = (fitting(choice, [cell]) for choice in parts.choices(part))
    return next((value for value in values if value is not NOTHING), NOTHING)


def _columns(part: Part, table: Rows, parts: Parts) -> dict[str, int]:
    """Which column each field is; none where one that must be there has none.

    Only what must be there is matched by kind: words with the first columns of words, numbers
    with the last ones of numbers, because what was measured comes last.
    """
    known = fields(part)
    named = {
        name: at
        for name in known
        for at, column in enumerate(table.columns)
        if is_same(column, name)
    }
    left = [name for name in part.get("required") or known if name not in named]
    numbers, texts = _kinds(table, named.values())
    counted = [name for name in left if _is_counted(known[name], parts)]
    worded = [name for name in left if name not in counted]
    found = named | dict(zip(worded, texts, strict=False))
    found |= dict(zip(reversed(counted), reversed(numbers), strict=False))
    missing = [name for name in part.get("required", ()) if name not in found]
    return found if all(parts.may_be_null(known[name]) for name in missing) else {}


def _cells(part: Part, name: str, table: Rows) -> Iterator[Any]:
    """One column: that of this name, or of the right kind where the name says nothing."""
    if kind(part) == "array":
        return
    said = [word for word in name_words(name) if singular(word) not in _ANY]
    numbers, texts = _kinds(table)
    if said:
        found = [at for at, c in enumerate(table.columns) if is_same(c, " ".join(said))]
    else:
        found = numbers[-1:] if kind(part) in ("number", "integer") else texts
    for row in table.rows if found else ():
        yield fitting(part, [row[found[0]]])


def _kinds(table: Rows, taken: Iterable[int] = ()) -> tuple[list[int], list[int]]:
    """The columns of numbers and the others, but for those that are taken, and for keys."""
    free = [
        at
        for at, column in enumerate(table.columns)
        if at not in taken and name_words(column)[-1:] != ["id"]
    ]
    numbers = [at for at in free if _is_numeric([row[at] for row in table.rows])]
    return numbers, [at for at in free if at not in numbers]


def _is_numeric(cells: Sequence[Any]) -> bool:
    there = [cell for cell in cells if cell is not None]
    return bool(there) and all(map(is_number, there))


def _is_counted(part: Any, parts: Parts) -> bool:
    kinds = {kind(choice) for choice in parts.choices(part)}
    return bool(kinds & {"number", "integer"}) and "string" not in kinds
