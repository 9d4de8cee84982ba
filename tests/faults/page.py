"""A page as in a browser: loaded once, then changed by socket frames."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "col", "hr", "img", "input", "link", "meta", "path", "rect", "use", "wbr"}
# What depends on the moment, and what only a script uses.
FLEETING = {"duration", "bar", "live", "actions"}
TOLD = ("id", "class", "data-status", "data-verdict")


@dataclass(slots=True)
class Node:
    tag: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Node | str"] = field(default_factory=list)

    @property
    def nodes(self) -> list["Node"]:
        return [child for child in self.children if isinstance(child, Node)]

    @property
    def text(self) -> str:
        words = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join(" ".join(words).split())

    @property
    def shape(self) -> tuple:
        """Everything a reader could distinguish, at any time."""
        told = tuple(self.attributes.get(name, "") for name in TOLD)
        if self.tag == "time":  # "23:14" is "Nov 18, 23:14" after midnight
            return (self.tag, told, self.attributes.get("datetime", ""))
        inner = tuple(
            child.strip() if isinstance(child, str) else child.shape
            for child in self.children
            if not _is_fleeting(child)
        )
        return (self.tag, told, inner)

    def find(self, id: str) -> "Node | None":
        found = self._around(id)
        return found[0].children[found[1]] if found else None  # type: ignore[return-value]

    def all(self, name: str) -> list["Node"]:
        """Return every element of this class, in order."""
        own = [self] if name in self.attributes.get("class", "").split() else []
        return own + [node for child in self.nodes for node in child.all(name)]

    def replace(self, id: str, new: "Node") -> None:
        if found := self._around(id):
            parent, at = found
            parent.children[at] = new

    def remove(self, id: str) -> None:
        if found := self._around(id):
            parent, at = found
            del parent.children[at]

    def _around(self, id: str) -> "tuple[Node, int] | None":
        for at, child in enumerate(self.children):
            if isinstance(child, str):
                continue
            if child.attributes.get("id") == id:
                return self, at
            if found := child._around(id):
                return found
        return None


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node()
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while len(self.open) > 1 and tag not in VOID:
            if self.open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Node:
    reader = _Reader()
    reader.feed(html)
    return reader.root


def take(page: Node, frame: str) -> None:
    """Apply a frame like htmx: replace elements by id, or append them to another."""
    for element in read(frame).nodes:
        how, _, target = element.attributes.pop("hx-swap-oob", "true").partition(":#")
        if how == "delete":
            page.remove(element.attributes.get("id", ""))
        elif how == "innerHTML":
            if (found := page.find(element.attributes.get("id", ""))) is not None:
                found.children = element.children
        elif how == "beforeend":
            if (parent := page.find(target)) is not None:
                parent.children += element.children
        else:
            page.replace(element.attributes.get("id", ""), element)


def _is_fleeting(child: Node | str) -> bool:
    if isinstance(child, str):
        return not child.strip()
    return bool(FLEETING & set(child.attributes.get("class", "").split()))
