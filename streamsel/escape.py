"""Escape unprintable characters of names before a terminal shows them."""

from __future__ import annotations


def shown(text: object) -> str:
    r"""Return a text whose unprintable characters are escaped, as `repr` does inside its quotes.

    Escaped are characters that move the cursor, set colours, change the direction of writing or
    cannot be encoded; all others are unchanged.

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
