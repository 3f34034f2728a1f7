"""A merchant and an operator who work in a browser, with a phone each, and nothing but what the pages offer."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import expect

from tests.support.authenticator import Phone

PASSWORD = "a password of somebody, quite uncommon"


class Person:
    """Somebody at a page of one of both apps: fills forms, steps up where that is wanted, and never reloads."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.phone: Phone | None = None

    @property
    def project_id(self) -> str:
        """The project whose pages are open, by the address."""
        (found,) = re.findall(r"/(prj_\w+)", self.page.url)
        return str(found)

    def carry(self, secret: str) -> None:
        """Have a phone with this secret on it."""
        self.phone = Phone(secret)

    async def go(self, *names: str) -> None:
        """Follow links of the navigation, one after the other."""
        navigation = self.page.get_by_role("navigation", name="Navigation")
        for name in names:
            await navigation.get_by_role("link", name=name, exact=True).click()
            await expect(self.page.get_by_role("heading", name=name, level=1, exact=True)).to_be_visible()

    async def leave(self) -> None:
        """Close the page, so that it follows no more what others do."""
        await self.page.close()

    async def choose(self, name: str, option: str | re.Pattern[str], inside: Any = None) -> None:
        await (inside or self.page).get_by_role("combobox", name=name).click()
        await self.page.get_by_role("option", name=option).first.click()

    async def press(self, name: str, inside: Any = None) -> None:
        await (inside or self.page).get_by_role("button", name=name, exact=True).click()

    async def confirm(self, name: str) -> None:
        """Press the button of the dialog that asks whether it is meant."""
        await self.press(name, self.page.get_by_role("dialog"))

    async def set_password(self, link: str) -> None:
        """Set a password by a one-time link, to join a team with it where it is that link."""
        await self.page.goto(link)
        field = self.page.get_by_role("textbox", name="Password")
        await field.fill(PASSWORD)
        await self.page.get_by_role("button", name=re.compile("^(Set the password|Join)$")).click()
        await expect(field).to_be_hidden()

    async def sign_in(self, url: str, email: str) -> None:
        """Fill in the form by which one signs in at this app."""
        await self.page.goto(url)
        await self.page.get_by_label("E-mail").fill(email)
        await self.page.get_by_role("textbox", name="Password").fill(PASSWORD)
        await self.press("Sign in")

    async def step_up(self) -> None:
        """Type a code into the dialog that asks for one."""
        assert self.phone is not None
        dialog = self.page.get_by_role("dialog", name="Confirm that it is you")
        await dialog.get_by_label("Digit 1").click()
        await self.page.keyboard.type(await self.phone.code())
        await expect(dialog).to_be_hidden()

    async def step_up_if_asked(self, done: Any) -> None:
        """Wait until something is done, with a code where one is asked for on the way: it holds for five minutes."""
        dialog = self.page.get_by_role("dialog", name="Confirm that it is you")
        await expect(dialog.or_(done).first).to_be_visible()
        if await dialog.count():
            await self.step_up()
        await expect(done.first).to_be_visible()
