"""Every dialog and every form that a page's buttons open, as many at once as can be, to be looked at and checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from playwright.async_api import Page

from tests.browser.described import go

OPEN = """async clicked => {
  const skipped =
    "[disabled], [type=submit], [aria-pressed], [aria-haspopup], :has(.unseen), th *, nav *, form *, [role=search] *";
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const nameOf = (button) =>
    `${button.closest("section[aria-label]")?.ariaLabel ?? ""}: ${button.innerText.trim()}`;
  const itemOf = async (isNew) => {
    for (const menu of document.querySelectorAll("main [aria-haspopup=menu]")) {
      menu.click();
      await frames();
      await frames();
      const item = [...document.querySelectorAll("[role=menuitem]")].find(isNew);
      if (item !== undefined) return item;
      menu.click();
      await frames();
    }
    return undefined;
  };
  const forms = document.querySelectorAll("main form").length;
  const path = location.pathname;
  const opened = new Map();
  const seen = new Set();
  while (location.pathname === path) {
    const all = [...document.querySelectorAll("main button")].filter((one) => !one.matches(skipped));
    const isNew = (one) => !clicked.includes(nameOf(one));
    const next = all.find(isNew) ?? (await itemOf(isNew));
    if (next === undefined) break;
    const name = nameOf(next);
    clicked.push(name);
    next.click();
    await frames();
    for (const dialog of document.querySelectorAll("[role=dialog]")) {
      if (!seen.has(dialog)) opened.set(name, dialog);
      seen.add(dialog);
    }
  }
  const shown = [...opened].filter(([, dialog]) => dialog.isConnected).map(([name]) => name);
  return {
    clicked: clicked.filter((name) => shown.includes(name) || !opened.has(name)),
    shown,
    isMore: location.pathname !== path || shown.length < opened.size,
    hasForms: document.querySelectorAll("main form").length > forms,
  };
}"""
"""Clicks every button whose name was not clicked before, also behind an open dialog: of many rows, one's buttons.

What is in a row's menu is clicked as a button is, once the menu is open.

What is in a form belongs to it, and is left as it stands.

What was closed again by a later click is as if it had not been clicked.
"""

LAY_OUT = """() => {
  document.getElementById("root").style.display = "none";
  for (const dialog of document.querySelectorAll("[role=dialog]")) {
    const inner = dialog.parentElement;
    for (const one of inner.parentElement.children) if (one !== inner) one.style.display = "none";
    for (const part of [inner.parentElement, inner]) Object.assign(part.style, { position: "static", height: "auto" });
    Object.assign(inner.style, { padding: "12px", minHeight: "0" });
  }
}"""
"""Puts dialogs below each other that lay on each other, without the page behind them."""

PUT_BACK = '() => { document.getElementById("root").style.display = ""; }'


class Shown(NamedTuple):
    """What is open now: the names of the buttons whose dialogs are, and whether forms of the page itself are."""

    dialogs: list[str]
    has_forms: bool


async def opened(page: Page, address: str, *, another: str) -> AsyncIterator[Shown]:
    """Open all that the buttons of the page that is shown open; what closes something else is opened in another round.

    Between rounds it goes to ``another`` page, which closes what is open, and back to this one's address.
    """
    clicked: list[str] = []
    while True:
        found = await page.evaluate(OPEN, clicked)
        clicked = found["clicked"]
        if found["shown"] or found["hasForms"]:
            yield Shown(found["shown"], found["hasForms"])
            await page.evaluate(PUT_BACK)
        if not found["isMore"]:
            return
        await go(page, another)
        await go(page, address)


async def lay_out(page: Page) -> None:
    """Show the open dialogs alone, each as a whole."""
    await page.evaluate(LAY_OUT)
