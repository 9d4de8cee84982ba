"""A page in a browser without windows, for clients that are web pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, async_playwright

from tests.browser.server import launch_options

WAIT_SECONDS = 60


@asynccontextmanager
async def browser_page() -> AsyncIterator[Page]:
    """Open a page that reaches this machine only."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**launch_options())
        page = await browser.new_page()
        page.set_default_timeout(WAIT_SECONDS * 1000)
        await page.route(lambda url: "//127.0.0.1" not in url, lambda route: route.abort())
        yield page
        await browser.close()
