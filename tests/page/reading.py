"""Parse an HTML page: its contents, and whether all tags are closed."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}
# Names that are harmful if a page does not escape them.
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "&lt;already&gt;",
    "right\u202eto left\u200f",
    "two\nlines\x00 and \x1b[31m",
    "| pipe `tick` [link](http://example.org) *star* $x$",
    "x" * 10_000,
    "]]></style></svg>",
]


class Reader(HTMLParser):
    """Parser that collects tags, attributes and text; fails if a tag is closed that is not open."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def read(page):
    """Parse a page; check that it is complete, runs no script and loads nothing."""
    seen = Reader(page)
    assert not {"script", "iframe", "object", "embed", "link", "form", "base"} & set(seen.tags)
    for tag, name, value in seen.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "action", "data"):
            data = "data:text/csv;charset=utf-8," if tag == "a" else "data:image/png;base64,"
            assert value.startswith(("#", data)), (tag, name, value[:80])
    styles = [value for _, name, value in seen.attributes if name == "style"]
    assert not any("http" in (value or "") for value in styles)
    return seen
