"""A merchant's first day on a real chain and an operator's beside it, in two browsers, with nothing but their pages."""

from __future__ import annotations

import os
import re
from typing import Any

import aiohttp
import pytest
from msgspec import Struct
from playwright.async_api import expect

from tests.browser.conftest import chromium as chromium  # noqa: PLC0414  a fixture
from tests.browser.conftest import open_page as open_page  # noqa: PLC0414  likewise
from tests.browser.test_dashboard import pytestmark as pytestmark  # noqa: PLC0414  that the dashboard is built
from tests.support.gateway import ADMIN_KEY, until
from tests.support.in_a_browser import PASSWORD, Person
from tests.support.networks import Coin
from tests.support.networks.market import Market
from tests.support.receiver import Receiver

LONG_MS = 120_000
"""For what takes blocks."""
CALM = {"reduced_motion": "reduce"}
"""A page as people have it who want nothing to move: what moves is drawn anew for each frame of a day."""


class Shop(Struct, frozen=True):
    """The merchant's own server: it has a key, and hears webhooks."""

    url: str
    key: str
    session: aiohttp.ClientSession
    receiver: Receiver
    market: Market

    async def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self.session.post(self.url + path, json=body, headers={"X-Api-Key": self.key}) as response:
            answer: dict[str, Any] = await response.json()
            assert response.status == 201, answer
            return answer


async def sign_up(ada: Person, url: str, email: str) -> None:
    """Sign up, and be shown around in a sandbox."""
    page = ada.page
    await page.goto(f"{url}/dashboard/sign-up")
    await page.get_by_label("Name").fill("Ada's shop")
    await page.get_by_label("E-mail").fill(email)
    await page.get_by_role("textbox", name="Password").fill(PASSWORD)
    await ada.press("Create the account")
    await expect(page.get_by_role("heading", name="Your first project")).to_be_visible()
    await page.get_by_label("Name").fill("Try-out")
    await ada.press("Create the project")
    await ada.press("Open the project")
    steps = page.get_by_role("list", name="First steps")
    await ada.press("Make a payment and pay it", steps)
    await expect(steps.get_by_text("To do")).to_have_count(3)


async def enrol(ada: Person) -> None:
    """Turn the second factor on, by the key that is shown."""
    page = ada.page
    await ada.go("Security")
    factor = page.get_by_role("region", name="Second factor")
    await factor.get_by_role("textbox", name="Password").fill(PASSWORD)
    await ada.press("Turn it on", factor)
    ada.carry(await factor.locator("form code").inner_text())
    await factor.get_by_label("Code").fill(await ada.phone.code())
    await ada.press("Confirm", factor)
    await expect(factor.get_by_text("Keep these recovery codes")).to_be_visible()


async def begin_live(ada: Person, webhook_url: str) -> tuple[str, str]:
    """Make a live project and a key; return the signing secret and the key."""
    page = ada.page
    await page.get_by_role("button", name=re.compile("^Change project")).click()
    await page.get_by_role("menuitem", name="New project").click()
    await expect(page.get_by_role("heading", name="New project")).to_be_visible()
    await page.get_by_label("Name").fill("Nordlicht")
    await ada.press("Live")
    await page.get_by_label("Webhook URL").fill(webhook_url)
    await ada.press("Create the project")
    await expect(page.get_by_role("heading", name="Nordlicht is ready")).to_be_visible()
    secret = await page.locator("code").first.inner_text()
    await ada.press("Open the project")
    await ada.go("API keys")
    await page.get_by_label("Name").fill("web shop")
    await ada.press("Create the key")
    await ada.step_up()
    await expect(page.get_by_text("Copy the key now")).to_be_visible()
    return secret, await page.get_by_role("region", name="New key").locator("code").inner_text()


async def is_paid(ada: Person, customer: Person, shop: Shop, coin: Coin, amount: str) -> None:
    """Have a customer pay at the checkout what the shop's server asked for, while the merchant looks on."""
    page = ada.page
    await ada.go("Payments")
    body = {
        "chain": coin.chain,
        "token": coin.symbol,
        "pricingMode": "direct_crypto",
        "amount": amount,
        "orderId": "NL-1",
    }
    made = await shop.ask("/api/payment", body)
    row = page.get_by_role("row").filter(has_text="NL-1").filter(has_text=coin.symbol)
    await expect(row).to_contain_text("Pending")
    await customer.page.goto(made["checkoutUrl"])
    address = made["payment"]["depositAddress"]
    await expect(customer.page.get_by_text(address).first).to_be_visible()
    await shop.market.give(coin, address, coin.units(amount))
    await expect(customer.page.get_by_text("Paid").first).to_be_visible(timeout=LONG_MS)
    await customer.leave()
    await expect(row).to_contain_text("Paid")
    await row.get_by_role("link").click()
    await expect(page.get_by_text("payment.paid")).to_be_visible()
    await shop.receiver.wait(made["payment"]["paymentId"], "payment.paid")


async def refund(ada: Person, to: str) -> None:
    """Send a part of the payment back that is being looked at."""
    page = ada.page
    await ada.press("Refund")
    dialog = page.get_by_role("dialog", name="Send money back")
    await dialog.get_by_label("To address").fill(to)
    await dialog.get_by_label("Amount").fill("5")
    await ada.press("Refund", dialog)
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("region", name="Refunds")).to_contain_text("Completed", timeout=LONG_MS)


async def pay_out(ada: Person, rows: dict[str, str]) -> None:
    """Pay several out by a file in which a line is wrong at first, which is shown before anything is sent."""
    page = ada.page
    await ada.go("Payouts")
    await page.get_by_role("link", name="New payout").first.click()
    await ada.press("Many, from a CSV file")
    await ada.choose("Out of", re.compile("^USDX"))
    lines = "".join(f"{address},{amount}\n" for address, amount in rows.items())
    file = {"name": "payouts.csv", "mimeType": "text/csv", "buffer": f"{lines}0x12,1\n".encode()}
    await page.locator("input[type=file]").set_input_files(file)
    await ada.press("Check")
    await expect(page.get_by_role("row").filter(has=page.get_by_text("0x12", exact=True))).to_contain_text(
        "INVALID_ADDRESS"
    )
    await expect(page.get_by_text("1 has to be mended")).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.locator("input[type=file]").set_input_files(file | {"buffer": lines.encode()})
    await ada.press("Check")
    await ada.confirm("Pay out")
    table = page.get_by_role("table", name="Payouts")
    await expect(table.get_by_role("row").filter(has_text="Completed")).to_have_count(len(rows), timeout=LONG_MS)


async def swap(ada: Person) -> None:
    """Swap a part, by the offer that is shown."""
    page = ada.page
    await ada.go("Swaps and bridges")
    await page.get_by_role("link", name="New swap or bridge").first.click()
    await ada.choose("You give", re.compile("^USDX"))
    await page.get_by_label("Amount").fill("10")
    await ada.choose("You get", re.compile("^USDT"))
    await ada.press("Get a quote")
    await expect(page.get_by_text("Good for")).to_be_visible()
    await ada.press("Swap")
    await ada.confirm("Swap")
    await expect(page.get_by_text("Succeeded", exact=True)).to_be_visible(timeout=LONG_MS)


async def withdraw(ada: Person, to: str) -> None:
    """Take money out, with a code for this withdrawal alone."""
    page = ada.page
    await ada.go("Withdrawals")
    await page.get_by_role("link", name="New withdrawal").first.click()
    await ada.choose("Out of", re.compile("^USDX"))
    await page.get_by_label("To address").fill(to)
    await page.get_by_label("Amount").fill("15")
    await ada.press("Check")
    await page.get_by_role("dialog").get_by_label("Code").fill(await ada.phone.code())
    await ada.confirm("Withdraw")
    await expect(page.get_by_text("Completed", exact=True).first).to_be_visible(timeout=LONG_MS)


async def invite(ada: Person, open_page: Any, role: str, email: str) -> Person:
    """Have somebody join with this role, by the link that is shown once, and come back to the project."""
    page = ada.page
    await ada.go("Security", "Team")
    form = page.get_by_role("region", name="Invite somebody")
    await form.get_by_label("Name").fill(role)
    await form.get_by_label("E-mail").fill(email)
    await ada.choose("Role", role, form)
    await ada.press("Make the link", form)
    link = await form.locator("code").inner_text()
    other = Person(await open_page(**CALM))
    base = page.url.partition("/dashboard")[0]
    await other.set_password(base + link[link.index("/", len("https://")) :])
    await other.sign_in(f"{base}/dashboard/", email)
    await expect(other.page.get_by_role("navigation", name="Navigation")).to_be_visible()
    await other.page.goto(page.url.replace("/team", "/payments"))
    await expect(other.page.get_by_role("heading", name="Payments", level=1)).to_be_visible()
    return other


async def change_role(ada: Person, name: str, role: str) -> None:
    """Give somebody of the team another role, once it is said what that one may do."""
    page = ada.page
    await ada.go("Security", "Team")
    row = page.get_by_role("table", name="Members").get_by_role("row").filter(has_text=name)
    await ada.choose(f"Role of {name}", role, row)
    await expect(page.get_by_role("dialog")).to_contain_text(f"Change the role of {name}?")
    await ada.confirm("Change the role")
    await ada.step_up_if_asked(row.get_by_role("combobox").and_(page.locator(f"[value='{role}']")))


async def sees(other: Person, *, payouts: bool, keys: bool, team: bool) -> None:
    """Look at what one who has joined is offered, who then leaves."""
    page = other.page
    await other.go("Payouts")
    await expect(page.get_by_role("link", name="New payout").first).to_be_visible(visible=payouts)
    await other.go("API keys")
    await expect(page.get_by_role("button", name="Create the key")).to_have_count(int(keys))
    links = page.get_by_role("navigation", name="Navigation").get_by_role("link", name="Team", exact=True)
    if await links.count():
        await other.go("Team")
    await expect(page.get_by_role("button", name="Make the link")).to_have_count(int(team))
    await other.leave()


async def begin(officer: Person, gateway: Any, email: str) -> None:
    """Be made at the command line, set a password and a phone up, and be in."""
    page = officer.page
    who = ("admin", "create", email, "--name", "Olga", "--role", "owner")
    code, printed = await gateway.run(*who, *gateway.options)
    assert code == 0, printed
    link = printed.split()[-1]
    await officer.set_password(gateway.url + link[link.index("/", len("https://")) :])
    await officer.sign_in(f"{gateway.url}/operator/", email)
    await expect(page.get_by_role("heading", name="Set up your authenticator")).to_be_visible()
    officer.carry(await page.locator("form code").inner_text())
    await page.get_by_label("Code").fill(await officer.phone.code())
    await officer.press("Confirm")
    await officer.press("I have kept them: go on")
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def steer(officer: Person, chain: str, what: str, act: str, reason: str) -> None:
    """Pause or resume something of a chain."""
    page = officer.page
    await officer.go("Chains")
    await page.get_by_role("link", name=re.compile(chain, re.IGNORECASE)).first.click()
    line = page.get_by_role("listitem").filter(has=page.get_by_text(what, exact=True))
    await officer.press(act, line)
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill(reason)
    await officer.press(act, dialog)
    await officer.step_up_if_asked(line.get_by_text(reason) if act == "Pause" else line.get_by_text("goes on"))


async def ask_for_payout(ada: Person, to: str, amount: str) -> None:
    page = ada.page
    await ada.go("Payouts")
    await page.get_by_role("link", name="New payout").first.click()
    await ada.choose("Out of", re.compile("^USDX"))
    await page.get_by_role("textbox", name="To address").fill(to)
    await page.get_by_role("textbox", name="Amount").fill(amount)
    await ada.press("Check")
    await ada.confirm("Pay out")
    await page.wait_for_url(re.compile("/payouts/po_"))


async def find_in_queue(officer: Person, amount: str) -> None:
    """Open what is to be sent of this amount."""
    page = officer.page
    await officer.go("Chains", "Outbound queue")
    await page.get_by_role("row").filter(has_text=f"{amount} USDX").first.get_by_role("link").first.click()
    await expect(page.get_by_role("region", name="What it waits for")).to_be_visible()


async def cancel(officer: Person, amount: str) -> None:
    """Cancel what is not signed yet, whose name has to be typed."""
    page = officer.page
    await find_in_queue(officer, amount)
    await officer.press("Cancel the sending")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("to confirm").fill(page.url[-6:])
    await officer.press("Cancel the sending", dialog)
    await officer.step_up_if_asked(page.get_by_text("Cancelling asked for", exact=True))
    await expect(dialog).to_be_hidden()


async def raise_fee(officer: Person, amount: str) -> None:
    """Have what nobody mines replaced by a transaction that pays more, and that one by one whose fee is set by hand."""
    page = officer.page
    await find_in_queue(officer, amount)
    await expect(page.get_by_role("button", name="Raise the fee")).to_be_visible(timeout=LONG_MS)
    await officer.press("Raise the fee")
    await officer.confirm("Raise the fee")
    sent = page.get_by_role("table", name="Transactions").locator("tbody tr")
    await expect(sent).to_have_count(2, timeout=LONG_MS)
    await officer.press("Raise the fee")
    dialog = page.get_by_role("dialog")
    most = dialog.get_by_role("textbox", name="The most it may cost")
    await most.fill("0.000000000000000001")
    await officer.confirm("Raise the fee")
    await expect(dialog.get_by_role("alert")).to_contain_text("must be more than")
    await most.fill("0.05")
    await officer.confirm("Raise the fee")
    await expect(sent).to_have_count(3, timeout=LONG_MS)


async def add_token(officer: Person, chain: str, contract: str, symbol: str) -> None:
    """Have a token added by its contract, which the worker reads."""
    page = officer.page
    await officer.go("Tokens")
    await officer.press("Add a token")
    dialog = page.get_by_role("dialog")
    await officer.choose("Chain", re.compile(chain, re.IGNORECASE), dialog)
    await dialog.get_by_label("Contract").fill(contract)
    await officer.press("Add a token", dialog)
    row = page.get_by_role("row").filter(has_text=symbol)
    await officer.step_up_if_asked(row.first)
    # It can be received from now on; that it leaves takes the signer's own file.
    await expect(row.first).to_contain_text("not in the signer's own file yet", timeout=LONG_MS)


async def grant_live(officer: Person, email: str) -> None:
    """Take live mode back from a merchant, and grant it again."""
    page = officer.page
    await officer.go("Merchants")
    await page.get_by_placeholder("Name, e-mail address or id").fill(email)
    await page.get_by_role("row").filter(has_text=email).get_by_role("link").click()
    for act, then in (("Take live mode back", "Grant live mode"), ("Grant live mode", "Take live mode back")):
        await officer.press(act)
        await officer.confirm(act)
        await officer.step_up_if_asked(page.get_by_role("button", name=then, exact=True))


async def send_again(officer: Person) -> None:
    """Have sent again what was given up."""
    page = officer.page
    await officer.go("Webhooks")
    await officer.press("Send dropped ones again")
    await officer.confirm("Send dropped ones again")
    await officer.step_up_if_asked(page.get_by_role("heading", name="Sending webhooks again", level=1))
    await expect(page.get_by_text("Succeeded", exact=True)).to_be_visible(timeout=LONG_MS)


async def read_log(officer: Person, *actions: str) -> None:
    """Find each of these in the audit log, and the first of them, too, by the words that name it."""
    page = officer.page
    await officer.go("Audit log")
    for action in actions:
        await expect(page.get_by_role("row").filter(has_text=action).first).to_contain_text("Olga")
    first, *others = actions
    await page.get_by_role("combobox", name="What", exact=True).fill(first)
    await page.get_by_role("option", name=first, exact=True).click()
    for other in others:
        await expect(page.get_by_role("row").filter(has_text=other)).to_have_count(0)
    await expect(page.get_by_role("row").filter(has_text=first).first).to_contain_text("Olga")


MAY = {
    "Finance": {"payouts": True, "keys": False, "team": False},
    "Developer": {"payouts": False, "keys": True, "team": False},
}


@pytest.fixture
async def receiver():
    async with Receiver() as receiver:
        yield receiver
        assert receiver.rejected == []


async def test_a_merchant_and_an_operator_spend_a_day_at_their_pages(
    gateway, session, station, market, network, blocks, onlooker, story_db, open_page, receiver
):
    usdx, strangers = network.usdx, [network.stranger() for _ in range(6)]
    tag = os.urandom(4).hex()
    email = f"ada{tag}@shop.example"
    # What is paid out here is little on purpose, and the worker may derive minimums at any moment.
    ours = {"X-Admin-Key": ADMIN_KEY}
    async with session.put(gateway.url + "/api/admin/settings", json={"payoutMinimumFees": 0}, headers=ours) as set_up:
        assert set_up.status == 200

    ada = Person(await open_page(**CALM))
    await sign_up(ada, gateway.url, email)
    await enrol(ada)
    olga = Person(await open_page(**CALM))
    await begin(olga, gateway, f"olga{tag}@gateway.example")
    await grant_live(olga, email)
    receiver.secret, key = await begin_live(ada, receiver.url)
    shop = Shop(gateway.url, key, session, receiver, market)
    await is_paid(ada, Person(await open_page(**CALM)), shop, usdx, "60")
    await refund(ada, strangers[0])
    await pay_out(ada, {strangers[1]: "3", strangers[2]: "4.5"})
    await swap(ada)
    await withdraw(ada, strangers[3])
    for role, may in MAY.items():
        await sees(await invite(ada, open_page, role, f"{role.lower()}{tag}@shop.example"), **may)
    await change_role(ada, "Developer", "Viewer")

    paused = gateway.log.read_text().count("sending_paused")
    await steer(olga, network.chain, "Sending", "Pause", "the provider is being replaced")

    async def follows() -> bool:
        return gateway.log.read_text().count("sending_paused") > paused

    await until(follows)  # the worker reads it within a second
    await ask_for_payout(ada, strangers[4], "1.25")
    await ask_for_payout(ada, strangers[5], "2.75")
    await ada.go("Payouts")
    payouts = ada.page.get_by_role("table", name="Payouts").get_by_role("row")
    await cancel(olga, "1.25")
    await expect(payouts.filter(has_text="1.25")).to_contain_text("Cancelled")
    async with blocks.held():
        await steer(olga, network.chain, "Sending", "Resume", "it is there")
        await raise_fee(olga, "2.75")
    await expect(payouts.filter(has_text="2.75")).to_contain_text("Completed", timeout=LONG_MS)

    gold = await network.node.deploy("TestToken", "GOLD", 9)
    await add_token(olga, network.chain, gold.address, "GOLD")
    # Its attempts last for days: these are over.
    async with story_db.transaction() as conn:
        over = await conn.exec_driver_sql(
            "UPDATE webhook_deliveries d SET status = 'dropped' FROM projects p"
            " WHERE p.id = d.project_pk AND p.project_id = $1 AND d.event = 'payment.paid'",
            (ada.project_id,),
        )
        assert over.rowcount == 1
    heard = len(receiver.received)
    await send_again(olga)
    await receiver.until(lambda: len(receiver.received) > heard)
    assert receiver.received[-1]["event"] == "payment.paid"
    await read_log(
        olga,
        "Job asked for",
        "Token added",
        "Higher fee asked for",
        "Chain resumed",
        "Cancelling asked for",
        "Chain paused",
        "Live mode granted",
    )

    amounts = ("5", "3", "4.5", "15", "0", "2.75")
    for address, amount in zip(strangers, amounts, strict=True):
        assert await onlooker.holds(address, usdx, amount), (address, amount)
    report = await gateway.reconcile()
    assert report["agrees"] is True
