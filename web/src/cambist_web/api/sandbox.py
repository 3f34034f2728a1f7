"""A sandbox project's simulated chains: what a test makes happen on them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import UNSET, UnsetType

from cambist.domain.exchanges import Kind, Status
from cambist.services.actor import Actor
from cambist.services.payouts.read import PayoutView, payout_view
from cambist.services.receiving.accounts.deposits import AccountDeposit
from cambist.services.receiving.payments.views import PaymentView
from cambist.services.sandbox.requests import AdvanceTime, Deposit, FailExchange, FailPayout, Mine, Reorg
from cambist.services.sandbox.service import SimulatedTip
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.once import Once
from cambist_web.schemas import Answer


class ChainAnswer(Answer, frozen=True, kw_only=True):
    """Where the chain stands now."""

    chain: str
    height: int
    block_hash: str


class DepositAnswer(ChainAnswer, frozen=True, kw_only=True):
    """The transfer that was made, and what became of the payment, or what it is to the account."""

    tx_hash: str
    payment: PaymentView | UnsetType = UNSET
    deposit: AccountDeposit | UnsetType = UNSET


class ChainsAnswer(Answer, frozen=True, kw_only=True):
    """Where the chains stand now."""

    chains: Sequence[SimulatedTip]


class FailingPayout(Answer, frozen=True, kw_only=True):
    """A payout that will fail, as it is until its block is mined."""

    payout: PayoutView


class FailingExchange(Answer, frozen=True, kw_only=True):
    """An exchange that will fail, as it is until its chains show that."""

    txn_id: str
    kind: Kind
    status: Status


class SandboxChains(Controller):
    """The simulated chains of one project. Answers come when the gateway has read what they made happen."""

    tags = ("Sandbox",)

    @post("/deposit", status_code=200, summary="Pay a payment, or to an account", opt=needs("payments"))
    async def deposit(
        self,
        data: JSONBody[Deposit],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> DepositAnswer:
        """Send money to an address of a payment or an account, in a block of its own."""

        async def deposit() -> DepositAnswer:
            made = await web.sandbox.deposit(actor, data)
            return DepositAnswer(
                **msgspec.structs.asdict(made.state),
                tx_hash=made.tx_id,
                payment=made.payment or UNSET,
                deposit=made.deposit or UNSET,
            )

        return await once.around(deposit)

    @post("/mine", status_code=200, summary="Mine blocks", opt=needs("payments"))
    async def mine(
        self,
        data: JSONBody[Mine],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> ChainAnswer:
        """Mine blocks, so that transfers get confirmations."""

        async def mine() -> ChainAnswer:
            return ChainAnswer(**msgspec.structs.asdict(await web.sandbox.mine(actor, data)))

        return await once.around(mine)

    @post("/reorg", status_code=200, summary="Replace blocks", opt=needs("payments"))
    async def reorg(
        self,
        data: JSONBody[Reorg],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> ChainAnswer:
        """Replace the newest blocks by others; what stood in them is dropped, or mined again in the next block."""

        async def reorg() -> ChainAnswer:
            return ChainAnswer(**msgspec.structs.asdict(await web.sandbox.reorg(actor, data)))

        return await once.around(reorg)

    @post("/fail-payout", status_code=200, summary="Have a payout fail", opt=needs("payouts"))
    async def fail_payout(
        self, data: JSONBody[FailPayout], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> FailingPayout:
        """Have a payout, refund or withdrawal that is not mined yet fail when it is: its money comes back."""
        payout = await web.sandbox.fail_payout(actor, data)
        return FailingPayout(payout=payout_view(payout, web.gateway.registry))

    @post("/fail-exchange", status_code=200, summary="Have a swap or bridge fail", opt=needs("exchange"))
    async def fail_exchange(
        self, data: JSONBody[FailExchange], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> FailingExchange:
        """Have a swap or bridge that is not mined yet fail when it is, or a bridge expire before anybody fills it."""
        row = await web.sandbox.fail_exchange(actor, data)
        return FailingExchange(txn_id=row.txn_id, kind=row.kind, status=row.status)

    @post("/advance-time", status_code=200, summary="Let time pass", opt=needs("payments"))
    async def advance_time(
        self,
        data: JSONBody[AdvanceTime],
        actor: NamedDependency[Actor],
        web: NamedDependency[Web],
        once: NamedDependency[Once],
    ) -> ChainsAnswer:
        """Let time pass, so that payments expire: everything on the chains becomes so much older."""

        async def pass_time() -> ChainsAnswer:
            return ChainsAnswer(chains=await web.sandbox.advance_time(actor, data))

        return await once.around(pass_time)


controllers = [key_routes("/api/sandbox", SandboxChains), project_routes("/sandbox", SandboxChains)]
