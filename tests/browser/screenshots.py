"""Render the screenshots of docs/pages/report.md: `python -m tests.browser.screenshots`."""

import io
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import streamsel
from tests.browser.chromium import launch

IMAGES = Path(__file__).parents[2] / "docs" / "pages" / "images"
ROWS, COLUMNS = 240, 20_000
# Name -> width and height of the screen, and its colour scheme.
SHOTS = {"report-desk": (1280, 1560, "light"), "report-phone": (390, 1560, "dark")}
MOST_BYTES = 120_000


def example():
    """Return a model of a cohort: few genes are relevant, some correlate with their neighbours."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(ROWS, COLUMNS))
    causes = rng.choice(COLUMNS - 2, size=14, replace=False)
    X[:, causes + 1] = X[:, causes] + 0.35 * rng.normal(size=(ROWS, causes.size))
    # Hundreds of genes that were measured together, and correlate.
    X[:, 9_000:9_800] += 0.5 * rng.normal(size=(ROWS, 1))
    y = X[:, causes] @ rng.uniform(0.35, 1.0, size=causes.size) + rng.normal(size=ROWS)
    names = [f"ENSG{140_000 + 7 * j:011d}" for j in range(COLUMNS)]
    model = streamsel.ForwardSelection(k=12)
    model.learn_target(y)
    model.learn_columns(X, names)
    return model


METADATA = {
    "command": "select",
    "file": "expression.parquet",
    "target": ["survival"],
    "columns_read": 20_412,
    "complete": True,
    "skipped": {"with missing values": 388, "text": 24},
    "seconds": 1.9,
    "peak_memory": 260_000_000,
    "fingerprint": {"rows": ROWS, "columns": 20_413, "files": 1, "bytes": 39_200_112},
}


def main():
    """Write the screenshots."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "page.html"
        page.write_text(streamsel.report(example(), metadata=METADATA), encoding="utf-8")
        print(f"page: {page.stat().st_size:,} bytes")
        browser = launch(playwright)
        for name, (width, height, scheme) in SHOTS.items():
            viewport = {"width": width, "height": height}
            tab = browser.new_page(viewport=viewport, color_scheme=scheme)
            tab.goto(page.as_uri())
            shot = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
            path = IMAGES / f"{name}.png"
            few = shot.quantize(160, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(path, optimize=True)
            print(f"{name}: {path.stat().st_size:,} bytes")
            assert path.stat().st_size < MOST_BYTES


if __name__ == "__main__":
    main()
