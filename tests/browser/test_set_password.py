"""The pages that one-time links lead to, in a browser: a password is set there once, and the token is not shown."""

import httpx
import pytest
from playwright.async_api import expect

from tests.browser.test_dashboard import axe as axe  # noqa: PLC0414  a fixture of all tests of dashboards
from tests.browser.test_dashboard import violations
from tests.support.authenticator import Authenticator
from tests.support.checkout import serving
from tests.support.web import ADMIN_KEY, PASSWORD, lent_app, memory_gateway, web_settings

EMAIL = "new@shop.example"
ADMIN = {"X-Admin-Key": ADMIN_KEY}


@pytest.fixture
async def url(database_url, redis_url, clock, ids):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids) as gateway, lent_app(gateway) as app, serving(app) as url:
        yield url


@pytest.fixture
async def client(url):
    async with httpx.AsyncClient(base_url=url) as client:
        yield client


async def link(client, url, path, body, headers=ADMIN):
    """Ask for something that is answered with a link, and return the link on this server."""
    made = await client.post(path, json=body, headers=headers)
    assert made.status_code == 201, made.text
    page, token = made.json()["link"].removeprefix("http://gateway.example").split("#")
    assert token
    return f"{url}{page}#{token}"


async def set_password(page, password, act="Set the password"):
    await page.get_by_role("textbox", name="Password").fill(password)
    await page.get_by_role("button", name=act, exact=True).click()


async def test_a_link_sets_a_password_once_and_says_what_is_wrong_with_another(open_page, client, url, axe):
    made = await link(client, url, "/api/admin/merchants", {"email": EMAIL, "name": "New"})
    page = await open_page(viewport={"width": 320, "height": 640})
    await page.goto(made)
    field = page.get_by_role("textbox", name="Password")
    await expect(field).to_be_focused()
    assert await violations(page, axe) == []
    assert page.url == f"{url}/dashboard/set-password", "the token would stay in the browser's history"
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    await expect(field).to_have_attribute("type", "password")
    await expect(field).to_have_attribute("autocomplete", "new-password")
    await set_password(page, "password123")
    await expect(page.get_by_role("alert")).to_contain_text("guess")
    assert await violations(page, axe) == []
    await set_password(page, PASSWORD)
    await expect(page.get_by_role("status")).to_have_text("The password is set. Sign in with it.")
    assert await violations(page, axe) == []
    await page.get_by_role("link", name="Sign in").click()
    await page.get_by_label("E-mail").fill(EMAIL)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.wait_for_url(f"{url}/dashboard/projects/new")

    again = await open_page()
    await again.goto(made)
    await set_password(again, "another correct horse battery staple")
    await expect(again.get_by_role("alert")).to_contain_text("link")
    refused = await client.post(
        "/api/auth/login", json={"email": EMAIL, "password": "another correct horse battery staple"}
    )
    assert refused.status_code == 401


async def test_a_link_without_its_token_says_so_until_it_is_there_as_a_whole(open_page, client, url, axe):
    page = await open_page()
    for path in ("dashboard/set-password", "dashboard/join", "operator/set-password"):
        await page.goto(f"{url}/{path}")
        told = page.get_by_role("alert")
        await expect(told).to_have_text("This link is not complete. Copy it again, as a whole.")
        await expect(page.get_by_role("textbox")).to_have_count(0)
        assert await violations(page, axe) == []
    made = await link(client, url, "/api/admin/operators", {"email": EMAIL, "name": "New", "role": "support"})
    await page.goto(made)
    await expect(page.get_by_role("textbox", name="Password")).to_be_visible()
    assert await violations(page, axe) == []
    await set_password(page, PASSWORD)
    await expect(page.get_by_role("status")).to_have_text("The password is set. Sign in with it.")
    await expect(page.get_by_role("link", name="Sign in")).to_have_attribute("href", "/operator/sign-in")


async def test_who_is_invited_sees_by_whom_and_joins(open_page, client, url, clock, axe):
    owner = {"email": "ada@shop.example", "password": PASSWORD, "name": "Ada's Shop"}
    registered = await client.post("/api/auth/register", json=owner)
    bearer = {"Authorization": f"Bearer {registered.json()['accessToken']}"}
    two_factor = "/api/dashboard/two-factor"
    shown = await client.post(f"{two_factor}/enrol", json={"password": PASSWORD}, headers=bearer)
    phone = Authenticator(shown.json()["secret"], clock)
    for path in (f"{two_factor}/confirm", "/api/auth/step-up"):
        await client.post(path, json={"totpCode": phone.next_code()}, headers=bearer)
    body = {"email": EMAIL, "name": "Eve", "role": "finance"}
    made = await link(client, url, "/api/dashboard/invitations", body, bearer)
    page = await open_page()
    await page.goto(made)
    await expect(page.get_by_text(f"Ada's Shop invites you, {EMAIL}. Role: Finance.")).to_be_visible()
    assert page.url == f"{url}/dashboard/join"
    assert await violations(page, axe) == []
    await set_password(page, PASSWORD, "Join")
    await expect(page.get_by_role("status")).to_have_text("Welcome to the team. Sign in with the new password.")

    again = await open_page()
    await again.goto(made)
    await expect(again.get_by_role("alert")).to_contain_text("used")
    await expect(again.get_by_role("textbox")).to_have_count(0)
    assert await violations(again, axe) == []
