"""A test environment for payouts: a merchant with money, without sending engine or web server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cambist.domain.intents import IntentKind
from cambist.plugin import Units
from cambist.services import platform
from cambist.services.accounting import ledger
from cambist.services.accounting.ledger import Account, Movement, Posting, Purpose
from cambist.services.actor import Actor
from cambist.services.idempotency import Made
from cambist.services.payouts import batch, create
from cambist.services.payouts.handler import PayoutHandler
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from cambist.services.payouts.read import PayoutRow
from cambist.services.payouts.requests import BatchRequest, PayoutRequest
from cambist.services.platform import PlatformPatch
from cambist.services.sending.handler import IntentUpdate
from cambist.testing.memory.family import named_address
from tests.support.payment_env import PaymentEnv

PURPOSES = ("available", "pending", "held", "receivable", "custody_wallet")


class QuietRefunds:
    """Remembers what it is told of refunds, and lets all that was held be held again."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def _note(self, what: str, payouts: Sequence[PayoutRow]) -> None:
        self.told += [(what, payout.payout_id, payout.status) for payout in payouts]

    async def on_broadcast(self, _conn, payouts, _now) -> None:
        self._note("broadcast", payouts)

    async def on_failed(self, _conn, payouts, _now) -> Mapping[int, Units]:
        self._note("failed", payouts)
        return {payout.pk: payout.held_units for payout in payouts}

    async def on_final(self, _conn, payouts, _now) -> None: ...

    async def on_revived(self, _conn, payouts, _now) -> Mapping[int, Units]:
        self._note("revived", payouts)
        return {payout.pk: payout.held_units for payout in payouts}


def person(name: str = "ann") -> str:
    """Return an address of somebody."""
    return named_address(f"somebody called {name}")


class PayoutEnv:
    """Pays out of the live project's wallet on the chain in memory, unless told otherwise."""

    def __init__(self, payment_env: PaymentEnv) -> None:
        self.payment_env, self.db, self.clock, self.ids = (
            payment_env,
            payment_env.db,
            payment_env.clock,
            payment_env.ids,
        )
        self.live, self.test = payment_env.live, payment_env.test
        self.context = PayoutContext(
            registry=payment_env.registry,
            keys=payment_env.context.leaser._keys,
            clock=payment_env.clock,
            ids=payment_env.ids,
        )
        self.refunds = QuietRefunds()
        self.handler = PayoutHandler(self.refunds, self.ids)
        self.funded = 0

    def asset(self, symbol: str = "USDX") -> str:
        token = self.payment_env.registry.chains["memory"].token(symbol)
        assert token is not None
        return ledger.asset_key("memory", token.contract)

    async def move(self, debit: str, credit: str, units: int, *, symbol: str = "USDX", mode: str = "live") -> None:
        """Post between two of the merchant's accounts."""
        self.funded += 1
        debited, credited = (Account(self.live.merchant_pk, self.asset(symbol), Purpose(x)) for x in (debit, credit))
        posting = Posting(
            mode=mode, kind="test", reference=str(self.funded), movements=[Movement(debited, credited, Units(units))]
        )
        async with self.db.transaction() as conn:
            await ledger.post(conn, mode, [posting])

    async def fund(self, units: int, purpose: str = "available", **where: Any) -> None:
        await self.move("custody_wallet", purpose, units, **where)

    async def balances(self, mode: str = "live", symbol: str = "USDX") -> dict[str, int]:
        """Return the merchant's balances of a token without the zeros; of custody, what is held."""
        async with self.db.transaction() as conn:
            accounts = [Account(self.live.merchant_pk, self.asset(symbol), Purpose(name)) for name in PURPOSES]
            found = await ledger.lock_balances(conn, mode, accounts)
        signs = {"custody_wallet": -1}
        return {
            str(account.purpose): balance * signs.get(account.purpose, 1)
            for account, balance in found.items()
            if balance
        }

    async def settings(self, **fields: Any) -> None:
        patch = msgspec.convert(fields, PlatformPatch)
        async with self.db.transaction() as conn:
            await platform.save(conn, self.payment_env.registry, patch, self.clock.now())

    async def pay(self, actor: Actor | None = None, header_key: str | None = None, **fields: Any) -> Made[PayoutRow]:
        """Pay 10 USDX to Ann, unless told otherwise in the names of the JSON."""
        body = {"chain": "memory", "token": "USDX", "amount": "10", "toAddress": person(), **fields}
        request = msgspec.convert({name: value for name, value in body.items() if value is not None}, PayoutRequest)
        async with self.db.transaction() as conn:
            return await create.create_payout(conn, self.context, actor or self.live, request, header_key)

    async def pay_all(
        self, rows: Sequence[dict[str, Any]], header_key: str | None = None, actor: Actor | None = None, **fields: Any
    ) -> batch.Batch:
        """Pay a batch in USDX."""
        body = {"chain": "memory", "token": "USDX", "destinations": rows, **fields}
        request = msgspec.convert(body, BatchRequest)
        async with self.db.transaction() as conn:
            return await batch.create_batch(conn, self.context, actor or self.live, request, header_key)

    async def queue(self, kind: IntentKind, units: int, **fields: Any) -> PayoutRow:
        """Queue something that is not asked for as a payout."""
        chain = self.payment_env.registry.chains["memory"]
        token = chain.token("USDX")
        assert token is not None
        prefix = {IntentKind.REFUND: "ref", IntentKind.WITHDRAWAL: "wd"}.get(kind, "po")
        new = NewPayout(
            kind=kind,
            payout_id=self.ids.new(prefix),
            project_pk=self.live.project_pk,
            merchant_pk=self.live.merchant_pk,
            mode="live",
            chain=chain,
            token=token,
            to_address=person(),
            units=Units(units),
            **fields,
        )
        async with self.db.transaction() as conn:
            (row,) = await debit_and_queue(conn, self.context, await platform.load(conn), [new])
        return row

    async def happens(self, what: str, *payouts: PayoutRow, **fields: Any) -> None:
        """Let the engine say what happened: ``waiting``, ``broadcast``, ``final``, ``failed`` or ``undone``."""
        if what in {"broadcast", "final", "undone"}:
            fields = {"tx_id": "0xa", "incarnation": 1, **fields}
        sent = [
            IntentUpdate(
                intent_pk=payout.intent_pk,
                reference=f"{payout.kind}:{payout.payout_id}",
                kind=payout.kind,
                mode=payout.mode,
                chain=payout.chain,
                scope=payout.scope,
                merchant_pk=payout.merchant_pk,
                source_pk=1,
                recipient_pk=None,
                to_address=payout.to_address,
                token=payout.token,
                contract=payout.contract,
                decimals=payout.decimals,
                units=payout.units,
                **fields,
            )
            for payout in payouts
        ]
        async with self.db.transaction() as conn:
            await getattr(self.handler, f"on_{what}")(conn, sent, self.clock.now())

    async def events(self, payout_id: str) -> list[tuple[str, dict[str, Any]]]:
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT event, body FROM webhook_events WHERE resource_id = $1 ORDER BY id", (payout_id,)
            )
            return [(row.event, msgspec.json.decode(row.body)["data"]) for row in rows]
