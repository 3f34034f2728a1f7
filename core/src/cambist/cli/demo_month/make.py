"""Lets a month pass on a gateway that nobody else uses yet: with a clock of its own, a moment after the other."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import asdict

from cambist.bootstrap import Gateway, Parts, open_gateway
from cambist.cli.demo_shop import PASSWORD, WebhookReceiver
from cambist.domain.webhooks import RetrySchedule
from cambist.ports import SystemClock
from cambist.services.addresses.account_keys import fill_stock, register_gas_stations
from cambist.services.audit.entries import Action, Origin, record
from cambist.services.errors import ConflictError
from cambist.services.identity import operators
from cambist.services.identity.passwords import Passwords
from cambist.services.pricing import price_points
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.secrets import SigningSecrets
from cambist.services.webhooks.sender import open_sender
from cambist.settings import Settings

from .clock import SetClock
from .days import DAYS, Days
from .people import LIVE_PATH, LiveProject, People
from .shop import Opened, Shop, books_of, open_shop

NAME, EMAIL = "Corner shop", "demo{number}@shop.example"
OPERATOR = "operator{number}@shop.example"
TRIES_MAX = 20
SEED = 20
"""The month is the same each time it is made, but for its addresses and the day on which it ends."""
PRICES_EVERY = timedelta(hours=1)
CHANNELS = ("/customers", "/suppliers")


class DemoMonth(Struct, frozen=True, kw_only=True):
    """What a later start has to know of the month: who signs in, and what takes the shop's webhooks.

    ``live_key`` is of the live project, and ``station`` pays its fees: there where a chain has a node.
    """

    email: str
    operator: str
    port: int
    secrets: dict[str, str]
    live_key: str | None
    station: str | None


def write(made: DemoMonth, path: Path) -> None:
    """Write it down for the next start, for nobody else's eyes; it is there whole or not at all."""
    beside = path.with_suffix(".new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(made), file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


async def make(settings: Settings, say: Callable[[str], None]) -> DemoMonth:
    """Have the month happen, and return what there is to know of it."""
    real = SystemClock()
    end = real.now()
    clock = SetClock(real, end - timedelta(days=DAYS, minutes=1))
    async with (
        WebhookReceiver() as receiver,
        open_gateway(settings, role="worker", parts=Parts(clock=clock)) as gateway,
        open_sender(clock=clock, timeout_ms=settings.webhooks.timeout_ms, targets=settings.webhook_targets) as sender,
    ):
        deliverer = Deliverer(
            db=gateway.db,
            sender=sender,
            secrets=SigningSecrets(gateway.secrets),
            hints=gateway.hints,
            clock=clock,
            schedule=RetrySchedule(retries=settings.webhooks.retries, base_delay_ms=settings.webhooks.base_delay_ms),
            timeout_ms=settings.webhooks.timeout_ms,
        )
        try:
            await _derive_keys(gateway)
            operator = await _numbered(OPERATOR, partial(_add_operator, gateway))
            month = Month(gateway, clock, receiver, deliverer)
            email = await _numbered(EMAIL, month.open)
            people = await month.people(operator)
            await people.join()
            await people.govern()
            await month.happen(end, say)
            live = await month.go_live(people)
        finally:
            await _date_the_books(gateway, None)
        return DemoMonth(
            email=email,
            operator=operator,
            port=receiver.port,
            secrets=dict(receiver.secrets),
            live_key=None if live is None else live.key,
            station=None if live is None else live.station,
        )


class Month:
    """The month of one shop: what happens in it, what is delivered of it, and what everything cost by then."""

    def __init__(self, gateway: Gateway, clock: SetClock, receiver: WebhookReceiver, deliverer: Deliverer) -> None:
        self._gateway = gateway
        self._clock = clock
        self._receiver = receiver
        self._deliverer = deliverer
        self._books = books_of(gateway)
        self._symbols = price_points.symbols_of(gateway.registry)
        self._opened: Opened | None = None
        self._prices_at = clock.now()

    async def open(self, email: str) -> None:
        """Open the shop. Raises ConflictError for an address that is taken."""
        self._opened = await open_shop(
            self._books, name=NAME, email=email, password=PASSWORD, webhook_url=self._receiver.url
        )
        self._receiver.secrets[self._receiver.path] = self._opened.secret

    async def people(self, operator: str) -> People:
        """Return the people of the shop, and of the gateway of which ``operator`` is the first."""
        async with self._gateway.db.transaction() as conn:
            operator_id = await operators.id_of(conn, operator)
        marked = operator.partition("@")[0].removeprefix("operator")
        return People(self._gateway, self._shop, operator_id, marked=marked, password=PASSWORD)

    async def go_live(self, people: People) -> LiveProject | None:
        """Open the shop's live project, where a chain has a node."""
        if all(chain.availability != "live" for chain in self._gateway.registry.chains.values()):
            return None
        live = await people.go_live(name=f"{NAME}, live", webhook_url=self._receiver.url_of(LIVE_PATH))
        self._receiver.secrets[LIVE_PATH] = live.secret
        return live

    @property
    def _shop(self) -> Opened:
        if self._opened is None:
            raise AssertionError("the shop is opened first")
        return self._opened

    async def happen(self, end: datetime, say: Callable[[str], None]) -> None:
        """Let everything happen until ``end``, each at its moment. ``say`` hears how far it has come."""
        shop = Shop(self._books, self._shop)
        urls = [self._receiver.url_of(path) for path in CHANNELS]
        days = Days(shop, self._clock, Random(SEED), end, urls)  # noqa: S311  what customers do, nothing secret
        told = 0
        for at, work in days.pass_():
            await self._pass_until(at)
            await work()
            self._receiver.secrets |= dict(zip(CHANNELS, days.tracker_secrets, strict=False))
            await self._deliverer.deliver_due()
            if (week := int((DAYS - (end - at) / timedelta(days=1)) // 7)) > told:
                told = week
                say(f"   week {week} of {DAYS // 7}")
        await self._pass_until(end)

    async def _pass_until(self, at: datetime) -> None:
        """Let time pass, and what it alone makes due happen, as the worker would."""
        self._clock.set(at)
        now = self._clock.now()
        if now >= self._prices_at:
            self._prices_at = now + PRICES_EVERY
            currencies = self._gateway.settings.prices.snapshot_currencies
            await price_points.record(self._gateway.db, self._gateway.rates, self._symbols, now, currencies)
        # After the prices: what is posted now is worth what was known by then.
        now = self._clock.now()
        await _date_the_books(self._gateway, now)
        await self._books.sandbox.judge_due(now)


async def _derive_keys(gateway: Gateway) -> None:
    """Derive what the worker has by the time at which the gateway is ready."""
    if gateway.signer is None:
        raise AssertionError("the demo's worker has the keys")
    families = gateway.registry.families.values()
    coin_types = {family.coin_type for family in families}
    stock = gateway.settings.keys.stock
    await fill_stock(gateway.db, gateway.signer, gateway.secrets, coin_types=coin_types, stock=stock)
    async with gateway.db.transaction() as conn:
        await register_gas_stations(conn, gateway.keys, families)


async def _add_operator(gateway: Gateway, email: str) -> None:
    now, ids = gateway.clock.now(), gateway.ids
    password_hash = await Passwords(ids.random_bytes).hash_new(PASSWORD, [email])
    async with gateway.db.transaction() as conn:
        made = await operators.add(
            conn, email=email, name="Demo operator", role="owner", password_hash=password_hash, ids=ids, now=now
        )
        told = {"email": email, "role": made.role}
        by = Origin(actor_kind="gateway")
        await record(conn, by, Action.OPERATOR_MADE, now, subject=made.operator_id, details=told)


async def _numbered(email: str, act: Callable[[str], Awaitable[None]]) -> str:
    """Do it with the first address that is free: an earlier month may have been broken off. Return the address."""
    for number in range(1, TRIES_MAX):
        chosen = email.format(number="" if number == 1 else number)
        try:
            await act(chosen)
        except ConflictError:
            continue
        return chosen
    raise ConflictError("EMAIL_TAKEN", "Too many months were begun in this folder. Delete it.")


async def _date_the_books(gateway: Gateway, at: datetime | None) -> None:
    """Have the ledger's transactions say this moment, or again the database's own: they do not take the clock's.

    Nothing is changed that is posted, which the database would refuse.
    """
    default = "now()" if at is None else f"'{at.isoformat()}'::timestamptz"
    async with gateway.db.autocommit() as conn:
        await conn.exec_driver_sql(f"ALTER TABLE ledger_transactions ALTER created_at SET DEFAULT {default}")
