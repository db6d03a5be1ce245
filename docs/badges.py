"""Generate the badges of README.md from pyproject.toml.

python docs/badges.py
"""
# ruff: noqa: INP001

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "pages" / "images"
# Width of a letter and of the margin around a word, in pixels.
LETTER, MARGIN = 6.6, 8
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{left}: {right}">
<title>{left}: {right}</title>
<rect width="{width}" height="20" rx="3" fill="#0b5f8a"/>
<path d="M3 0h{middle}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{x_left}" y="14">{left}</text>
<text x="{x_right}" y="14">{right}</text>
</g>
</svg>
"""  # noqa: E501


def badges() -> dict[str, str]:
    """Return each badge's name and its SVG."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = project["requires-python"].removeprefix(">=")
    typed = "Typing :: Typed" in project["classifiers"]
    return {
        "python": _badge("python", f"{least} or newer"),
        "license": _badge("license", project["license"]),
        "typed": _badge("types", "mypy strict" if typed else "none"),
    }


def _badge(left: str, right: str) -> str:
    first, second = (round(len(word) * LETTER + 2 * MARGIN) for word in (left, right))
    return BADGE.format(
        width=first + second,
        middle=first - 3,
        x_left=first / 2,
        x_right=first + second / 2,
        left=left,
        right=right,
    )


if __name__ == "__main__":
    for name, svg in badges().items():
        (IMAGES / f"badge-{name}.svg").write_text(svg, encoding="utf-8")
