"""Somebody writes anything into the database, and calls anything: the signer lets out its cap."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from cambist.domain.intents import AskedBy, IntentKind
from cambist.signer.rules import AskerRules, Rules, asset_name
from cambist.testing.memory.family import named_address
from tests.support.payment_env import registry
from tests.support.plays import play
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

ONE = 10**6
TREASURE = 100_000 * ONE
CAP, FRESH_CAP = 1_000 * ONE, 150 * ONE
MEM_CAP = 10**16
DAY_S, HOUR_S, STEP_S = 86_400, 3_600, 1_200
IN_STEPS = [STEP_S] * (HOUR_S // STEP_S)
FIRST_HOURS = [*IN_STEPS * 3, HOUR_S, HOUR_S]
A_DAY = [*FIRST_HOURS, DAY_S - HOUR_S - sum(FIRST_HOURS), *IN_STEPS]
"""Steps until delays end. What nobody takes between the first hours and the last does not add up for later."""
KINDS = ("payout", "refund", "collection", "top_up", "withdrawal", "auto_payout")
THIEVES = [named_address(f"thief {number}") for number in range(6)]


def rules() -> Rules:
    usdx, mem = (asset_name("memory", registry().chains["memory"].token(symbol).contract) for symbol in ("USDX", "MEM"))
    return Rules(
        hourly_caps={usdx: CAP, mem: MEM_CAP},
        fresh_address_caps={usdx: FRESH_CAP, mem: 0},
        askers={AskedBy.KEY: AskerRules(), AskedBy.SESSION: AskerRules()},
        fresh_address_delay_s=DAY_S,
    )


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    """Give a merchant who has a lot, part of it in the main wallet, and a signer with rules."""
    async with Treasury(db, clock, ids, tmp_path, rules=rules()) as treasury:
        await play(treasury, grown_rich)
        yield treasury


async def grown_rich(treasury: Treasury) -> None:
    await treasury.open_paid(*[("USDX", TREASURE), ("MEM", 10**18)] * 2)
    await treasury.pay_out("USDX", 1, named_address("a customer"))
    await treasury.work(treasury.engine())
    # These stay where they were paid to.
    for _ in range(2):
        await treasury.receive("USDX", TREASURE)


class Thief:
    """Has the database, as its owner, and the API."""

    def __init__(self, treasury: Treasury) -> None:
        self.treasury = treasury
        self.taken: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self.begun = treasury.clock.monotonic()
        self._numbers = 0

    async def sql(self, statement: str, *params) -> list:
        async with self.treasury.db.transaction() as conn:
            # The ledger's guards are triggers, and its owner can switch them off.
            await conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
            found = await conn.exec_driver_sql(statement, params)
            return found.all() if found.returns_rows else []

    async def order(self, kind: str, source_pk: int, to_address: str, units: int, *, symbol="USDX") -> None:
        """Write an intent that nobody asked for. What stays with us by its kind is said to go to the main wallet."""
        recipient = self.treasury.wallet.pk if kind in {"collection", "top_up"} else None
        self._numbers += 1
        token = self.treasury.token(symbol)
        await self.sql(
            "INSERT INTO outbound_intents (reference, kind, mode, chain, scope, merchant_pk, source_address_pk,"
            " recipient_address_pk, to_address, token, contract, decimals, units, priority, due_at, created_at,"
            " updated_at, asked_by) VALUES ($1, $2, 'live', 'memory', 0, $3, $4, $5, $6, $7, $8, $9, $10, 0,"
            " $11, $11, $11, $12)",
            f"{kind}:theft {self._numbers}", kind, self.treasury.merchant, source_pk, recipient, to_address, symbol,
            token.contract, token.decimals, units, self.treasury.clock.now(),
            AskedBy.KEY,  # the lie that helps a thief most
        )  # fmt: skip

    async def count(self) -> None:
        """Note what the thief has by now."""
        for symbol in ("USDX", "MEM"):
            total = sum([await self.treasury.on_chain(thief, symbol) for thief in THIEVES])
            self.taken[symbol].append((self.treasury.clock.monotonic() - self.begun, total))

    def most_in_an_hour(self, symbol: str, until_s: float = 10 * DAY_S) -> int:
        notes = [(0.0, 0), *((at, total) for at, total in self.taken[symbol] if at <= until_s)]
        return max(
            (later - total for at, total in notes for then, later in notes if 0 <= then - at <= HOUR_S), default=0
        )

    def total(self, symbol: str, until_s: float) -> int:
        return max((total for at, total in self.taken[symbol] if at <= until_s), default=0)


async def run(treasury: Treasury, thief: Thief, lengths: list[int], crime, *, rounds: int = 3) -> None:
    """Let time pass in steps of so many seconds, with an engine that does what the database says."""
    engine = treasury.engine()
    for step, length in enumerate(lengths):
        await crime(step)
        for _ in range(rounds):
            await engine.tick()
            await treasury.mine(2)
        await thief.count()
        treasury.clock.advance(length)


async def open_everything(thief: Thief) -> None:
    """Take away every limit and approval that the database holds, and say that all money is there to be spent."""
    await thief.sql("DELETE FROM platform_settings")
    await thief.sql("UPDATE ledger_accounts SET balance = 1000000000000000000000, guarded = false WHERE balance >= 0")
    for number, address in enumerate(THIEVES):
        await thief.sql(
            "INSERT INTO approved_addresses (approval_id, merchant_pk, mode, chain, address, label, approved_at)"
            " VALUES ($1, $2, 'live', 'memory', $3, 'mine', '2020-01-01')",
            f"apr_{number}", thief.treasury.merchant, address,
        )  # fmt: skip


async def sources(thief: Thief) -> dict[str, list[int]]:
    rows = await thief.sql("SELECT id, purpose FROM addresses WHERE mode = 'live' AND family = 'memory' ORDER BY id")
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row.purpose].append(row.id)
    return found


async def test_orders_written_into_the_database_take_no_more_than_the_signer_lets_out(treasury):
    thief, random = Thief(treasury), Random(1)
    await open_everything(thief)
    own = await sources(thief)
    places = [*own["wallet"] * 3, *own["payment"], *own["gas"]]

    # Of everything at once, which together is more than may go: as long as addresses are fresh, and afterwards.
    waves = {0: FRESH_CAP // 3, len(A_DAY): CAP // 3}

    async def crime(step: int) -> None:
        if step % 2 == 0 and step < len(A_DAY):
            # Whatever is refused keeps what is small enough behind it.
            await thief.sql("DELETE FROM outbound_intents WHERE state = 'waiting'")
        if step in waves:
            for kind, address in [*(("payout", one) for one in THIEVES), *zip(KINDS, THIEVES, strict=True)]:
                await thief.order(kind, own["wallet"][0], address, waves[step])
        for _ in range(6):
            units = random.choice([CAP // 2, CAP // 7, FRESH_CAP, FRESH_CAP // 3, FRESH_CAP // 3, 1])
            await thief.order(random.choice(KINDS), random.choice(places), random.choice(THIEVES), units)
        await thief.order(
            random.choice(KINDS), random.choice(places), random.choice(THIEVES), MEM_CAP // 3, symbol="MEM"
        )
        # What waits until a moment that the signer named is asked for again at once.
        await thief.sql("UPDATE outbound_intents SET due_at = '2020-01-01' WHERE state = 'waiting'")

    await run(treasury, thief, [*A_DAY, *IN_STEPS * 3], crime, rounds=2)
    assert thief.total("USDX", DAY_S - 1) > 2 * FRESH_CAP, "what the rules leave open is taken, or nothing was tried"
    assert thief.most_in_an_hour("USDX", DAY_S - 1) <= FRESH_CAP
    assert thief.most_in_an_hour("USDX") <= CAP
    assert thief.most_in_an_hour("USDX") > FRESH_CAP, "after their delay, addresses get what the cap allows"
    assert thief.total("MEM", DAY_S - 1) == 0
    assert thief.most_in_an_hour("MEM") <= MEM_CAP


async def test_an_address_of_ours_that_was_rewritten_is_a_stranger_to_the_signer(treasury):
    """Collections go where the database says that the main wallet is, or that a merchant's own addresses are."""
    thief = Thief(treasury)
    await open_everything(thief)
    own = await sources(thief)
    await thief.sql("UPDATE addresses SET address = $1 WHERE id = $2", THIEVES[0], own["wallet"][0])
    await thief.sql(
        "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_index, change, address_index)"
        " VALUES ('live', 'memory', $1, 'payment', $2, 1, 0, 77)", THIEVES[1], treasury.merchant,
    )  # fmt: skip
    row = (await thief.sql("SELECT id FROM addresses WHERE address = $1", THIEVES[1]))[0].id

    async def crime(step: int) -> None:
        await thief.order("collection", own["payment"][step % 2], THIEVES[step % 2], CAP // 3)
        await thief.sql("UPDATE outbound_intents SET recipient_address_pk = $1 WHERE to_address = $2", row, THIEVES[1])
        await thief.sql("UPDATE outbound_intents SET due_at = '2020-01-01' WHERE state = 'waiting'")

    await run(treasury, thief, FIRST_HOURS, crime)
    waiting = await thief.sql("SELECT DISTINCT reason FROM outbound_intents WHERE state = 'waiting'")
    assert any(row.reason.startswith("signer: ") for row in waiting), "it was asked for, and refused"
    assert thief.total("USDX", DAY_S) <= 5 * FRESH_CAP
    assert thief.most_in_an_hour("USDX") <= FRESH_CAP


async def test_forgetting_what_was_sent_does_not_open_the_hour_again(treasury):
    """The counters are the signer's own: rows that are deleted, or set back, count all the same."""
    thief = Thief(treasury)
    await open_everything(thief)
    wallet = (await sources(thief))["wallet"][0]
    for thief_address in THIEVES:
        await treasury.signer.learn("live", "memory", 1, thief_address)
    treasury.clock.advance(DAY_S)

    async def crime(step: int) -> None:
        for table in ("outbound_txs", "outbound_slots", "outbound_senders", "outbound_intents"):
            await thief.sql(f"DELETE FROM {table}")  # noqa: S608  constants
        for number in range(4):
            await thief.order("payout", wallet, THIEVES[(step + number) % len(THIEVES)], CAP // 4)

    await run(treasury, thief, FIRST_HOURS, crime, rounds=2)
    assert CAP < thief.total("USDX", 2 * DAY_S) <= 5 * CAP
    assert CAP // 4 <= thief.most_in_an_hour("USDX") <= CAP


async def test_a_withdrawal_to_a_fresh_address_waits_whatever_the_database_approves(treasury):
    thief = Thief(treasury)
    await open_everything(thief)
    wanted = await treasury.pay_out("USDX", 100 * ONE, THIEVES[0], kind=IntentKind.WITHDRAWAL)

    async def crime(step: int) -> None:
        await thief.sql("UPDATE outbound_intents SET due_at = '2020-01-01', reason = NULL WHERE state = 'waiting'")
        await thief.sql("UPDATE payouts SET created_at = '2020-01-01' WHERE payout_id = $1", wanted)

    await run(treasury, thief, [*A_DAY, *IN_STEPS], crime, rounds=2)
    assert thief.total("USDX", DAY_S) == 0
    assert thief.taken["USDX"][-1][1] == 100 * ONE, "after its delay it is as good as any"
    assert (await treasury.payout(wanted)).status == "completed"
