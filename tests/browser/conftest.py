"""Fixtures: a headless Chromium whose pages cannot access the network."""

from contextlib import contextmanager

import pytest

from tests.browser.chromium import launch


@pytest.fixture(scope="session")
def browser():
    """Return the browser; the tests fail if there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def look(browser):
    """Return a function that opens a file at a width and colour scheme, and lists errors."""

    @contextmanager
    def look(path, width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        troubles, own = [], path.as_uri()

        def only_itself(route):
            if route.request.url == own:
                route.continue_()
            else:
                troubles.append(f"asks for {route.request.url[:200]}")
                route.abort()

        context.route("**/*", only_itself)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(own)
        yield page, troubles
        context.close()

    return look
