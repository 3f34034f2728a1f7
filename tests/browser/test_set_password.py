"""The page that a one-time link leads to, in a browser: a password is set there once, and the token is not shown."""

import httpx
import pytest
from playwright.async_api import expect

from tests.support.checkout import serving
from tests.support.web import ADMIN_KEY, PASSWORD, lent_app, memory_gateway, web_settings

EMAIL = "new@shop.example"


@pytest.fixture
async def url(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids) as gateway, lent_app(gateway) as app, serving(app) as url:
        yield url


@pytest.fixture
async def client(url):
    async with httpx.AsyncClient(base_url=url) as client:
        yield client


@pytest.fixture
async def link(client, url):
    """Let a merchant in as the operator does, and return the link on this server."""
    made = await client.post(
        "/api/admin/merchants", json={"email": EMAIL, "name": "New"}, headers={"X-Admin-Key": ADMIN_KEY}
    )
    assert made.status_code == 201, made.text
    path, token = made.json()["link"].removeprefix("http://gateway.example").split("#")
    assert token
    return f"{url}{path}#{token}"


async def set_password(page, password: str, again: str | None = None) -> None:
    await page.get_by_label("Password").fill(password)
    await page.get_by_label("Again").fill(password if again is None else again)
    await page.get_by_role("button", name="Set it").click()


async def test_a_link_sets_a_password_once_and_says_what_is_wrong_with_another(open_page, client, link, url):
    page = await open_page(viewport={"width": 320, "height": 640})
    await page.goto(link)
    assert page.url == f"{url}/set-password", "the token would stay in the browser's history"
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    for label in ("Password", "Again"):
        await expect(page.get_by_label(label)).to_have_attribute("type", "password")
        await expect(page.get_by_label(label)).to_have_attribute("autocomplete", "new-password")
    told = page.get_by_role("status")
    await set_password(page, PASSWORD, f"{PASSWORD}!")
    await expect(told).to_have_text("The two passwords differ.")
    await set_password(page, "password123")
    await expect(told).to_contain_text("guess")
    await set_password(page, PASSWORD)
    await expect(page.get_by_label("Password")).to_be_hidden()
    await expect(told).not_to_be_empty()
    signed_in = await client.post("/api/auth/login", json={"email": EMAIL, "password": PASSWORD})
    assert signed_in.status_code == 200, signed_in.text

    again = await open_page()
    await again.goto(link)
    await set_password(again, "another correct horse battery staple")
    await expect(again.get_by_role("status")).to_contain_text("link")
    refused = await client.post(
        "/api/auth/login", json={"email": EMAIL, "password": "another correct horse battery staple"}
    )
    assert refused.status_code == 401


async def test_a_link_without_its_token_says_so(open_page, url):
    page = await open_page()
    await page.goto(f"{url}/set-password")
    await expect(page.get_by_role("status")).to_have_text("This link is not complete. Copy it again, as a whole.")
    await expect(page.get_by_label("Password")).to_be_hidden()
