"""Every page of the built documentation in a browser: links, images, formulas, narrow screens."""

import functools
import http.server
import threading
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[2] / "docs" / "site"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}

# Measurements of a rendered page.
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
    torn: [...document.querySelectorAll("article p")].map(p => p.textContent.trim())
        .filter(text => text.startsWith("| ")),
})"""

# Contrast of the current page's entry in the navigation; its background may be translucent.
CONTRAST = """() => {
    const link = [...document.querySelectorAll(".md-nav--primary a.md-nav__link--active")]
        .find(e => e.checkVisibility() && e.getBoundingClientRect().width);
    const parse = colour => { const c = colour.match(/[\\d.]+/g).map(Number);
        return [c.slice(0, 3), c.length > 3 ? c[3] : 1]; };
    const over = ([c, a], below) => c.map((v, i) => a * v + (1 - a) * below[i]);
    const luminance = c => c.map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const page = parse(getComputedStyle(document.body).backgroundColor)[0];
    const back = over(parse(getComputedStyle(link).backgroundColor), page);
    const text = over(parse(getComputedStyle(link).color), back);
    const [dark, light] = [luminance(text), luminance(back)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
}"""


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
    """Return what each page shows at both widths, other requests and console errors."""
    found, elsewhere, messages = {}, [], []
    tab = browser.new_page()

    def let_through(route):
        if route.request.url.startswith(site):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    tab.route("**/*", let_through)
    tab.on(
        "console", lambda message: messages.append(message.text) if message.type == "error" else 0
    )
    tab.on("pageerror", lambda error: messages.append(str(error)))
    for file in sorted(SITE.rglob("index.html")):
        url = site + str(file.parent.relative_to(SITE) / "_")[:-1].removeprefix("./")
        tab.goto(url, wait_until="load")
        found[url] = {}
        for size in (PHONE, DESK):
            tab.set_viewport_size(size)
            found[url][size["width"]] = tab.evaluate(LOOK)
    tab.close()
    return found, elsewhere, messages


def every(seen, what, width=DESK["width"]):
    return {url: page[width][what] for url, page in seen[0].items() if page[width][what]}


def test_no_external_requests_and_no_console_messages(seen):
    assert len(seen[0]) > 40
    assert seen[1] == []
    assert seen[2] == []


def test_no_link_is_dead(seen, site):
    ids = {url: {"", *page[DESK["width"]]["ids"]} for url, page in seen[0].items()}
    dead = []
    for url, page in seen[0].items():
        for link in {urljoin(url, link) for link in page[DESK["width"]]["links"]}:
            target, anchor = urldefrag(link)
            if not link.startswith(site):
                continue  # there is no network
            is_file = target.removeprefix(site) and (SITE / target.removeprefix(site)).is_file()
            if not is_file and anchor not in ids.get(target, ()):
                dead.append((url, link))
    assert dead == []


def test_no_image_is_broken(seen):
    assert every(seen, "broken") == {}


def test_every_formula_is_rendered(seen):
    assert sum(every(seen, "formulas").values()) > 500
    assert every(seen, "flat") == {}
    assert every(seen, "bad") == {}
    assert every(seen, "raw") == {}


@pytest.mark.parametrize("width", [PHONE["width"], DESK["width"]])
def test_no_page_is_wider_than_the_window(seen, width):
    wider = {url: by for url, by in every(seen, "wider", width).items() if by > 0}
    assert wider == {}


def test_no_table_is_malformed(seen):
    assert every(seen, "torn") == {}


@pytest.fixture
def desk(browser):
    tab = browser.new_page(viewport=DESK)
    yield tab
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_current_navigation_entry_has_enough_contrast(desk, site, scheme):
    desk.emulate_media(color_scheme=scheme)
    desk.goto(f"{site}limits/", wait_until="load")
    assert desk.evaluate(CONTRAST) > 4.5


def test_plots_are_in_two_columns(desk, site):
    desk.goto(f"{site}report/", wait_until="load")
    columns = "e => getComputedStyle(e).gridTemplateColumns.split(' ').length"
    assert desk.locator(".gallery").evaluate(columns) == 2


def test_wide_table_indicates_scrolling(desk, site):
    desk.set_viewport_size(PHONE)
    desk.goto(f"{site}limits/", wait_until="load")
    wrap = desk.locator(".md-typeset__scrollwrap").first
    assert wrap.evaluate("e => e.scrollWidth > e.clientWidth")
    shown = "e => getComputedStyle(e).backgroundImage.includes('radial-gradient')"
    assert wrap.evaluate(shown)
    covered = "e => getComputedStyle(e.querySelector('table')).backgroundColor"
    assert wrap.evaluate(covered) == "rgba(0, 0, 0, 0)"


def test_search_finds_how_to_save_a_model(desk, site):
    desk.goto(site, wait_until="load")
    desk.locator(".md-search__button").first.click()
    box = desk.locator("input[role=combobox], input[type=search], input[type=text]").first
    box.wait_for()
    box.press_sequentially("save a model")
    page = 'a[role="option"][aria-posinset="1"][href*="reference/functions/"]'
    desk.locator(page).first.wait_for(timeout=20_000)
