"""A day of a merchant's team: everybody signs in in person, does what the role is for, and is refused the rest."""

from __future__ import annotations

from typing import Any, Self

import pytest

from tests.support.gateway import Merchant, named, until

# Who may do what is the same on every kind of chain.
pytestmark = pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")

TEAM, INVITATIONS = "/api/dashboard/members", "/api/dashboard/invitations"


class Colleague(Merchant):
    """Somebody who was invited, with a password, a phone and a session of their own."""

    async def join(self, owner: Merchant, name: str, role: str, **more: Any) -> Self:
        self.email = f"{name}.{owner.email}"
        made = await owner.post(
            INVITATIONS, {"email": self.email, "name": name, "role": role, **more}, headers=owner.bearer, status=201
        )
        word = {"token": made["link"].partition("#")[2], "password": self.password}
        await self.post("/api/auth/invitations/accept", word, headers={})
        again = await self.post("/api/auth/invitations/accept", word, headers={}, status=400)
        assert again["code"] == "INVITATION_INVALID"
        login = await self.post("/api/auth/login", {"email": self.email, "password": self.password}, headers={})
        self.bearer = {"Authorization": f"Bearer {login['accessToken']}"}
        phone = await self.enrol()
        await self.post("/api/auth/step-up", {"totpCode": await phone.code()}, headers=self.bearer)
        me = (await self.get(f"{TEAM}/me", headers=self.bearer))["member"]
        assert (me["email"], me["role"]) == (self.email, role)
        self.member_id, self.project = me["memberId"], owner.project
        return self

    def path(self, rest: str) -> str:
        """Return a path of the project's, as the dashboard asks for it."""
        return f"/api/dashboard/projects/{self.project['projectId']}/{rest}"


@pytest.fixture(scope="module")
async def merchant(gateway, session, station, blocks, receiver) -> Merchant:
    """Give an owner who stays signed in with a phone."""
    owner = await Merchant(gateway.url, session).open(webhook_url=receiver.url)
    receiver.secret = owner.project["webhookSecret"]
    await owner.enrol()
    return owner


async def test_a_team_works_a_day_and_the_log_names_each(
    merchant, gateway, session, receiver, customer, network, usdx, onlooker
):
    async def join(name: str, role: str, **more: Any) -> Colleague:
        return await Colleague(gateway.url, session).join(merchant, name, role, **more)

    dev = await join("dev", "developer", projectIds=[merchant.project["projectId"]])
    fin = await join("fin", "finance")
    eve = await join("eve", "viewer")

    # The developer issues the key that a shop takes payments with; it has no scope for what its maker may not do.
    keys = f"/api/merchant/projects/{merchant.project['projectId']}/api-keys"
    beyond = {"name": "till", "scopes": ["payments", "payouts"]}
    refused = await dev.post(keys, beyond, headers=dev.bearer, status=403)
    assert refused["code"] == "SCOPE_NOT_ALLOWED"
    issued = await dev.post(keys, {"name": "till", "scopes": ["read", "payments"]}, headers=dev.bearer, status=201)
    dev.headers = {"X-Api-Key": issued["apiKey"]}
    payment = await dev.pay(usdx, 20)
    await customer.pay(payment["depositAddress"], usdx, 20)
    await dev.until(payment, "paid", seconds=180)
    await receiver.wait(payment["paymentId"], "payment.paid")

    # Money is finance's: by a session, and with a code of the person's own phone where it leaves for good.
    out = {**named(usdx), "amount": "5", "toAddress": network.stranger()}
    for who in (dev, eve):
        refused = await who.post(who.path("wallet/payout"), out, headers=who.bearer, status=403)
        assert refused["code"] == "ROLE_NOT_ALLOWED"
    payout = (await fin.post(fin.path("wallet/payout"), out, headers=fin.bearer, status=201))["payout"]
    refused = await fin.post(keys, {"name": "mine"}, headers=fin.bearer, status=403)
    assert refused["code"] == "ROLE_NOT_ALLOWED"
    refused = await dev.withdraw(usdx, 3, network.stranger(), status=403)
    assert refused["code"] in {"ROLE_NOT_ALLOWED", "PROJECTS_LIMITED"}
    savings = network.stranger()
    withdrawal = (await fin.withdraw(usdx, 3, savings))["withdrawal"]
    await fin.completed(withdrawal)

    # Who only looks sees that it was done.
    async def seen() -> bool:
        path = eve.path(f"wallet/payouts/{payout['payoutId']}")
        return (await eve.get(path, headers=eve.bearer))["payout"]["status"] == "completed"

    await until(seen)
    assert await onlooker.holds(out["toAddress"], usdx, 5)
    assert await onlooker.holds(savings, usdx, 3)
    refused = await eve.get("/api/dashboard/audit", headers=eve.bearer, status=403)
    assert refused["code"] == "ROLE_NOT_ALLOWED"

    # A project that is not open to the developer; a role that changes; somebody who leaves, whose key stays.
    other = {"name": "Second shop", "mode": "sandbox"}
    second = (await merchant.post("/api/merchant/projects", other, headers=merchant.bearer, status=201))["project"]
    refused = await dev.get(f"/api/merchant/projects/{second['projectId']}", headers=dev.bearer, status=403)
    assert refused["code"] == "PROJECT_NOT_OPEN"
    await merchant.patch(f"{TEAM}/{eve.member_id}", {"role": "admin"}, headers=merchant.bearer)
    log = await eve.get("/api/dashboard/audit?limit=100", headers=eve.bearer)
    acts = {(one["action"], one["actor"]) for one in log["entries"]}
    assert acts >= {
        ("api_key.issued", dev.member_id), ("payout.asked", fin.member_id), ("withdrawal.asked", fin.member_id),
    }  # fmt: skip
    await merchant.delete(f"{TEAM}/{dev.member_id}", headers=merchant.bearer)
    refused = await dev.get(f"{TEAM}/me", headers=dev.bearer, status=401)
    assert (await dev.payment(payment))["status"] == "paid"
    await gateway.reconcile()


async def test_an_owner_who_lost_the_phone_is_let_back_in_by_the_other_owner_and_nothing_is_lost(
    merchant, gateway, session, network, usdx
):
    """With the codes on paper, too: the other owner takes both away, and both sign in as themselves afterwards."""
    bob = await Colleague(gateway.url, session).join(merchant, "bob", "owner")
    me = (await merchant.get(f"{TEAM}/me", headers=merchant.bearer))["member"]["memberId"]
    held, balance = merchant.bearer, await merchant.balance(usdx)
    alone = await merchant.post(f"{TEAM}/{me}/two-factor/reset", {}, headers=held, status=403)
    assert alone["code"] == "NOT_YOURSELF"
    reset = await bob.post(f"{TEAM}/{me}/two-factor/reset", {}, headers=bob.bearer)
    merchant.phone, lost = None, merchant.phone
    assert (await merchant.get(f"{TEAM}/me", headers=held, status=401))["code"] == "SESSION_ENDED"
    before = {"email": merchant.email, "password": merchant.password}
    assert (await merchant.post("/api/auth/login", before, headers={}, status=401))["code"] == "INVALID_CREDENTIALS"
    merchant.password = "another password, and as uncommon"
    word = {"token": reset["link"].partition("#")[2], "password": merchant.password}
    await merchant.post("/api/auth/password-reset/confirm", word, headers={})
    login = {"email": merchant.email, "password": merchant.password}
    merchant.bearer = {
        "Authorization": f"Bearer {(await merchant.post('/api/auth/login', login, headers={}))['accessToken']}"
    }
    # Nothing leaves before there is a phone again, and the old one is good for nothing.
    out = {**named(usdx), "projectId": merchant.project["projectId"], "amount": "1", "toAddress": network.stranger()}
    refused = await merchant.post("/api/dashboard/withdrawals", out, headers=merchant.bearer, status=403)
    assert refused["code"] == "TWO_FACTOR_NOT_ENROLLED"
    await merchant.enrol()
    wrong = {"totpCode": await lost.code()}
    assert (await merchant.post("/api/auth/step-up", wrong, headers=merchant.bearer, status=403))["code"] == (
        "TWO_FACTOR_INVALID"
    )
    withdrawal = (await merchant.withdraw(usdx, 1, out["toAddress"]))["withdrawal"]
    await merchant.completed(withdrawal)
    assert int((await merchant.balance(usdx))["available"]) == int(balance["available"]) - 1
    log = await bob.get("/api/dashboard/audit?limit=100&action=two_factor.reset", headers=bob.bearer)
    assert [(one["actor"], one["subject"]) for one in log["entries"]] == [(bob.member_id, me)]
    code, printed = await gateway.run("audit", "verify", *gateway.options)
    assert code == 0, printed
