"""Names as people may see them: whatever a file calls its columns, it commands no terminal."""

from __future__ import annotations


def shown(text: object) -> str:
    r"""Write a text so that every character of it can be seen, as `repr` does inside its quotes.

    What moves the cursor, sets colours, turns the direction of writing, or cannot be encoded comes
    out as an escape; all else, and what names mostly are, as it is.

    Examples
    --------
    >>> shown("gene\x1b[31m\u202e7")
    'gene\\x1b[31m\\u202e7'
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
