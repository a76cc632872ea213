"""A rendered page as a tree, read with nothing of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr", "area", "base", "col", "embed", "source"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        for child in self.children:
            if isinstance(child, Node):
                yield child
                yield from child.walk()

    def all(self, tag: str = "", /, *, css: str = "", **attributes: str) -> list[Node]:
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            node
            for node in self.walk()
            if tag in ("", node.tag)
            and (not css or css in node.attributes.get("class", "").split())
            and all(node.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str = "", /, *, css: str = "", **attributes: str) -> Node:
        found = self.all(tag, css=css, **attributes)
        assert len(found) == 1, (tag, css, attributes, len(found))
        return found[0]

    @property
    def raw(self) -> str:
        return "".join(child if isinstance(child, str) else child.raw for child in self.children)

    @property
    def text(self) -> str:
        return " ".join(self.raw.split())


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        assert len(node.attributes) == len(attrs), f"an attribute twice in <{tag}>"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Node:
    """The page's tree; a tag that is closed in the wrong place fails the test."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert builder.open == [builder.root], [node.tag for node in builder.open]
    return builder.root
