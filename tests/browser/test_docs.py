"""Every page of the built docs as a reader has it: links, pictures, formulas, on a phone too."""

import functools
import http.server
import threading
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[2] / "docs" / "site"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

# What a page shows, as it is drawn.
LOOK = """() => ({
    links: [...document.querySelectorAll("article a[href], nav a[href]")].map(a => a.href),
    ids: [...document.querySelectorAll("[id]")].map(e => e.id),
    broken: [...document.images]
        .filter(i => i.loading !== "lazy" && (!i.complete || !i.naturalWidth)).map(i => i.src),
    formulas: document.querySelectorAll("math").length,
    flat: [...document.querySelectorAll("math")].filter(m => m.checkVisibility() &&
        (m.getBoundingClientRect().width < 2 || m.getBoundingClientRect().height < 2))
        .map(m => m.getAttribute("alttext")),
    bad: [...document.querySelectorAll("merror")].map(e => e.textContent),
    raw: [...document.querySelectorAll(".arithmatex")].filter(e => !e.querySelector("math"))
        .map(e => e.textContent),
    wider: document.documentElement.scrollWidth - window.innerWidth,
})"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def site():
    assert SITE.is_dir(), "build the docs first: zensical build --config-file docs/zensical.toml"
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def seen(browser, site):
    """Page -> what it shows at either width, and what went wrong; every page, once."""
    found, elsewhere, said = {}, [], []
    tab = browser.new_page()

    def let_through(route):
        if route.request.url.startswith(site):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    tab.route("**/*", let_through)
    tab.on("console", lambda message: said.append(message.text) if message.type == "error" else 0)
    tab.on("pageerror", lambda error: said.append(str(error)))
    for file in sorted(SITE.rglob("index.html")):
        url = site + str(file.parent.relative_to(SITE) / "_")[:-1].removeprefix("./")
        tab.goto(url, wait_until="load")
        found[url] = {}
        for size in (PHONE, DESK):
            tab.set_viewport_size(size)
            found[url][size["width"]] = tab.evaluate(LOOK)
    tab.close()
    return found, elsewhere, said


def every(seen, what, width=DESK["width"]):
    return {url: page[width][what] for url, page in seen[0].items() if page[width][what]}


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_complained_of(seen):
    assert len(seen[0]) > 60
    assert seen[1] == []
    assert seen[2] == []


def test_every_link_leads_somewhere(seen, site):
    ids = {url: {"", *page[DESK["width"]]["ids"]} for url, page in seen[0].items()}
    dead = []
    for url, page in seen[0].items():
        for link in {urljoin(url, link) for link in page[DESK["width"]]["links"]}:
            target, anchor = urldefrag(link)
            if not link.startswith(site):
                continue  # the network is not there to ask
            is_file = target.removeprefix(site) and (SITE / target.removeprefix(site)).is_file()
            if not is_file and anchor not in ids.get(target, ()):
                dead.append((url, link))
    assert dead == []


def test_every_picture_is_drawn(seen):
    assert every(seen, "broken") == {}


def test_every_formula_is_drawn(seen):
    assert sum(every(seen, "formulas").values()) > 500
    assert every(seen, "flat") == {}
    assert every(seen, "bad") == {}
    assert every(seen, "raw") == {}


@pytest.mark.parametrize("width", [PHONE["width"], DESK["width"]])
def test_no_page_is_wider_than_the_window(seen, width):
    wider = {url: by for url, by in every(seen, "wider", width).items() if by > 0}
    assert wider == {}
