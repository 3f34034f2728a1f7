"""The demo's shop: what its people and programs ask the gateway for, by the same use cases as the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.bootstrap import Gateway, exchange_context
from cambist.db.models import Project
from cambist.services.actor import Actor
from cambist.services.addresses.macs import AddressMacs
from cambist.services.audit.entries import Action, Origin, record
from cambist.services.exchanges import execute
from cambist.services.exchanges.offers import best_offer
from cambist.services.exchanges.read import FoundExchange
from cambist.services.exchanges.requests import BridgeOrder, SwapOrder
from cambist.services.identity import api_keys, members
from cambist.services.identity.api_keys import NewKey
from cambist.services.identity.passwords import Passwords
from cambist.services.identity.projects import Projects
from cambist.services.payouts import batch, create, withdrawals
from cambist.services.payouts.queue import PayoutContext
from cambist.services.payouts.requests import BatchRequest, PayoutRequest
from cambist.services.payouts.withdrawals import WithdrawalRequest
from cambist.services.platform import PlatformSettingsCache
from cambist.services.receiving.accounts import create as accounts
from cambist.services.receiving.accounts.create import AccountContext
from cambist.services.receiving.accounts.requests import CreateAccount
from cambist.services.receiving.accounts.views import AccountView, Presenter
from cambist.services.receiving.payments import create as payments
from cambist.services.receiving.payments.create import PaymentContext
from cambist.services.receiving.payments.requests import CreatePayment
from cambist.services.receiving.payments.views import PaymentView
from cambist.services.reversals.refunds import create as refunds
from cambist.services.reversals.refunds.create import RefundRequest
from cambist.services.sandbox import Sandbox
from cambist.services.sandbox.requests import Deposit, FailPayout, Mine, Reorg
from cambist.services.trackers import addresses
from cambist.services.trackers.create import NewTracker, TrackerContext, create_tracker
from cambist.services.trackers.credentials import TrackerSecrets
from cambist.services.webhooks.secrets import SigningSecrets

T = TypeVar("T")

AT_HOME = "127.0.0.1"
"""From where the shop's people and programs ask: from this machine."""


class Opened(Struct, frozen=True, kw_only=True):
    """A shop that has just been opened. ``secret`` signs its webhooks."""

    actor: Actor
    member_pk: int
    member_id: str
    secret: str


class Books(Struct, frozen=True, kw_only=True):
    """What of the gateway a shop's acts need."""

    gateway: Gateway
    sandbox: Sandbox
    payments: PaymentContext
    accounts: AccountContext
    payouts: PayoutContext
    trackers: TrackerContext


def books_of(gateway: Gateway) -> Books:
    settings, macs = gateway.settings, AddressMacs(gateway.secrets)
    parts: Any = {"registry": gateway.registry, "clock": gateway.clock, "ids": gateway.ids}
    receiving = parts | {
        "db": gateway.db,
        "leaser": gateway.leaser,
        "platform": PlatformSettingsCache(gateway.db, gateway.clock),
    }
    return Books(
        gateway=gateway,
        sandbox=Sandbox(
            **parts,
            db=gateway.db,
            hints=gateway.hints,
            macs=macs,
            fiat_currencies=settings.prices.snapshot_currencies,
        ),
        payments=PaymentContext(
            **receiving,
            pauses=gateway.pauses,
            token_rules=gateway.token_rules,
            rates=gateway.rates,
            macs=macs,
            targets=settings.webhook_targets,
        ),
        accounts=AccountContext(**receiving, presenter=Presenter(macs=macs, base_url=settings.web.base_url)),
        payouts=PayoutContext(**parts, keys=gateway.keys),
        trackers=TrackerContext(
            **parts,
            secrets=TrackerSecrets(gateway.secrets),
            targets=settings.webhook_targets,
            history_blocks_max=settings.trackers.history_blocks_max,
        ),
    )


async def open_shop(books: Books, *, name: str, email: str, password: str, webhook_url: str) -> Opened:
    """Register a merchant with a sandbox project and a key. Raises ConflictError for an address that is taken."""
    gateway = books.gateway
    now, ids = gateway.clock.now(), gateway.ids
    password_hash = await Passwords(ids.random_bytes).hash_new(password, [email, name])
    projects = Projects(SigningSecrets(gateway.secrets), ids, targets=gateway.settings.webhook_targets)
    async with gateway.db.transaction() as conn:
        member = await members.register(
            conn, email=email, name=name, password_hash=password_hash, ids=ids, now=now, live=False
        )
        made, secret = await projects.create(
            conn, member.merchant_pk, name=name, mode="sandbox", payment_webhook_url=webhook_url, now=now
        )
        found = await conn.execute(select(Project.id).where(Project.project_id == made.project_id))
        actor = Actor(
            merchant_pk=member.merchant_pk,
            merchant_id=member.merchant_id,
            project_pk=found.scalar_one(),
            project_id=made.project_id,
            mode="sandbox",
        )
        key = await api_keys.issue(conn, actor, NewKey(name="Till"), created_by=member.member_id, ids=ids, now=now)
        opened = Opened(actor=actor, member_pk=member.pk, member_id=member.member_id, secret=secret)
        by = in_person(opened)
        for action, subject, told in (
            (Action.MERCHANT_REGISTERED, member.merchant_id, {"email": email}),
            (Action.PROJECT_MADE, made.project_id, {"name": name, "mode": "sandbox"}),
            (Action.KEY_ISSUED, key.key.key_id, {"name": key.key.name}),
        ):
            await record(conn, by, action, now, subject=subject, details=told)
    return opened


def in_person(shop: Opened) -> Origin:
    """Return what is written down of what the shop's owner does."""
    return Origin(
        actor_kind="merchant",
        actor=shop.member_id,
        address=AT_HOME,
        merchant_id=shop.actor.merchant_id,
        project_id=shop.actor.project_id,
    )


class Shop:
    """One shop, and the customers who pay it on simulated chains. Amounts are decimal texts in whole tokens."""

    def __init__(self, books: Books, opened: Opened) -> None:
        self._books = books
        self._actor = opened.actor
        self._by = in_person(opened)
        self._db = books.gateway.db

    def depth(self, chain: str) -> int:
        """Return after how many blocks on top of it a transfer is final."""
        return max(1, self._books.gateway.registry.chains[chain].confirmations)

    async def order(self, *, minutes: int, **fields: str) -> PaymentView:
        """Ask for a payment, which waits for so many minutes."""
        asked = _read(CreatePayment, {"expiresInMinutes": minutes, **fields})
        made = await payments.create_payment(self._books.payments, self._actor, asked, None)
        return made.payment

    async def pay(self, payment: PaymentView, *, amount: str | None = None, confirmations: int | None = None) -> None:
        """Pay what remains, or this much; final unless so many confirmations are said."""
        deep = self.depth(payment.chain) if confirmations is None else confirmations
        asked = {"paymentId": payment.payment_id, "amount": amount, "confirmations": deep}
        await self._books.sandbox.deposit(self._actor, _read(Deposit, asked))

    async def refund(self, payment: PaymentView, **fields: str) -> None:
        """Send back what the payment received, or a part of it, and have it mined."""
        async with self._db.transaction() as conn:
            made = await refunds.create_refund(
                conn, self._books.payouts, self._actor, payment.payment_id, _read(RefundRequest, fields), None
            )
            one = made.resource
            told = {"chain": one.chain, "token": one.token, "amount": one.amount, "toAddress": one.to_address}
            await self._record(conn, Action.REFUND_ASKED, one.refund_id, told)
        await self._sent(payment.chain)

    async def account(self, external_id: str, chains: Sequence[str], metadata: Mapping[str, str]) -> AccountView:
        """Make an end user's account."""
        asked = {"externalId": external_id, "chains": chains, "metadata": metadata}
        made = await accounts.create_account(self._books.accounts, self._actor, _read(CreateAccount, asked))
        return made.account

    async def pay_in(self, account: AccountView, *, chain: str, token: str, amount: str) -> None:
        """Send money to an end user's address, until it is final."""
        whose = {"accountId": account.account_id, "chain": chain, "token": token, "amount": amount}
        asked = _read(Deposit, whose | {"confirmations": self.depth(chain)})
        await self._books.sandbox.deposit(self._actor, asked)

    async def pay_out(self, *, mined: bool = True, fails: bool = False, **fields: str) -> None:
        """Pay somebody; mined unless it shall still be on its way, or failing."""
        async with self._db.transaction() as conn:
            made = await create.create_payout(
                conn, self._books.payouts, self._actor, _read(PayoutRequest, fields), None
            )
            await self._record(conn, Action.PAYOUT_ASKED, made.resource.payout_id, fields)
        if fails:
            await self._books.sandbox.fail_payout(self._actor, FailPayout(payout_id=made.resource.payout_id))
        await self._sent(fields["chain"], mined=mined)

    async def pay_many(self, *, chain: str, token: str, destinations: Sequence[Mapping[str, str]]) -> None:
        """Pay a batch."""
        asked = {"chain": chain, "token": token, "destinations": destinations}
        async with self._db.transaction() as conn:
            made = await batch.create_batch(conn, self._books.payouts, self._actor, _read(BatchRequest, asked), None)
            told = {"chain": chain, "token": token, "payouts": made.accepted}
            await self._record(conn, Action.BATCH_ASKED, made.batch_id, told)
        await self._sent(chain)

    async def withdraw(self, **fields: str) -> None:
        """Take money out, as somebody who has shown a code of the second factor."""
        asked = {"projectId": self._actor.project_id, **fields}
        async with self._db.transaction() as conn:
            made = await withdrawals.create_withdrawal(
                conn, self._books.payouts, self._actor, _read(WithdrawalRequest, asked), None
            )
            await self._record(conn, Action.WITHDRAWAL_ASKED, made.resource.withdrawal_id, fields)
        await self._sent(fields["chain"])

    async def exchange(self, kind: type[SwapOrder | BridgeOrder], **fields: str) -> None:
        """Swap or bridge so many smallest units, at the offer of the moment."""
        context, order = exchange_context(self._books.gateway), _read(kind, fields)
        asked = await execute.begin(self._db, context, self._actor, order, None)
        if isinstance(asked, FoundExchange):
            raise AssertionError(  # noqa: TRY004  no argument is wrong
                "without an idempotency key nothing was there before"
            )
        offer = await best_offer(context, asked.settings, asked.prepared.wish, asked.prepared.terms)
        await execute.finish(self._db, context, self._actor, asked, offer, self._by)
        await self._sent(fields["srcChain"])
        if "destChain" in fields:
            await self.mine(fields["destChain"])

    async def track(self, *, addresses_watched: Sequence[Mapping[str, str]], **fields: str) -> str:
        """Make a tracker that watches these addresses, and return the secret that signs what it tells."""
        books = self._books
        async with self._db.transaction() as conn:
            made = await create_tracker(conn, books.trackers, self._actor, _read(NewTracker, fields))
            new = msgspec.convert(addresses_watched, list[addresses.NewAddress])
            checked = addresses.check_many(books.trackers.registry, made.tracker.chain, new)
            await addresses.add(conn, made.tracker, books.trackers.registry, checked, now=books.trackers.clock.now())
            await self._record(conn, Action.TRACKER_MADE, made.tracker.webhook_id, {"name": made.name})
        return made.credentials.secret_key

    async def mine(self, chain: str, blocks: int | None = None) -> None:
        """Mine so many blocks, or as many as make everything final."""
        await self._books.sandbox.mine(self._actor, Mine(chain=chain, blocks=blocks or self.depth(chain) + 1))

    async def reorganise(self, chain: str, depth: int) -> None:
        """Have the newest blocks replaced by others without what customers sent in them."""
        await self._books.sandbox.reorg(self._actor, Reorg(chain=chain, depth=depth, transactions="drop"))

    async def _sent(self, chain: str, *, mined: bool = True) -> None:
        await self._books.sandbox.send_queued(self._actor.project_pk, [chain])
        if mined:
            await self.mine(chain)

    async def _record(self, conn: AsyncConnection, action: Action, subject: str, told: Mapping[str, object]) -> None:
        await record(conn, self._by, action, self._books.gateway.clock.now(), subject=subject, details=told)


def _read(kind: type[T], fields: Mapping[str, object]) -> T:
    """Return a request as it comes out of a body; what is None is left out."""
    return msgspec.convert({name: value for name, value in fields.items() if value is not None}, kind)
