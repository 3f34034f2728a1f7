"""A sandbox project's simulated chains: what a test makes happen on them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from cambist.services.actor import Actor
from cambist.services.payouts.read import PayoutView, payout_view
from cambist.services.receiving.payments.views import PaymentView
from cambist.services.sandbox.requests import AdvanceTime, Deposit, FailPayout, Mine, Reorg
from cambist.services.sandbox.service import ChainState
from cambist_web.auth import key_routes, needs, project_routes
from cambist_web.context import Web
from cambist_web.schemas import Answer


class ChainAnswer(Answer, frozen=True, kw_only=True):
    """Where the chain stands now."""

    chain: str
    height: int
    block_hash: str


class DepositAnswer(ChainAnswer, frozen=True, kw_only=True):
    """The transfer that was made, and what became of the payment."""

    tx_hash: str
    payment: PaymentView


class ChainsAnswer(Answer, frozen=True, kw_only=True):
    """Where the chains stand now."""

    chains: Sequence[ChainState]


class FailingPayout(Answer, frozen=True, kw_only=True):
    """A payout that will fail, as it is until its block is mined."""

    payout: PayoutView


class SandboxChains(Controller):
    """The simulated chains of one project. Answers come when the gateway has read what they made happen."""

    tags = ("Sandbox",)

    @post("/deposit", status_code=200, summary="Pay a payment", opt=needs("payments"))
    async def deposit(
        self, data: JSONBody[Deposit], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> DepositAnswer:
        """Send money to a payment's address, in a block of its own."""
        made = await web.sandbox.deposit(actor, data)
        return DepositAnswer(**msgspec.structs.asdict(made.state), tx_hash=made.tx_id, payment=made.payment)

    @post("/mine", status_code=200, summary="Mine blocks", opt=needs("payments"))
    async def mine(self, data: JSONBody[Mine], actor: NamedDependency[Actor], web: NamedDependency[Web]) -> ChainAnswer:
        """Mine blocks, so that transfers get confirmations."""
        return ChainAnswer(**msgspec.structs.asdict(await web.sandbox.mine(actor, data)))

    @post("/reorg", status_code=200, summary="Replace blocks", opt=needs("payments"))
    async def reorg(
        self, data: JSONBody[Reorg], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> ChainAnswer:
        """Replace the newest blocks by others; what stood in them is dropped, or mined again in the next block."""
        return ChainAnswer(**msgspec.structs.asdict(await web.sandbox.reorg(actor, data)))

    @post("/fail-payout", status_code=200, summary="Have a payout fail", opt=needs("payouts"))
    async def fail_payout(
        self, data: JSONBody[FailPayout], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> FailingPayout:
        """Have a payout, refund or withdrawal that is not mined yet fail when it is: its money comes back."""
        payout = await web.sandbox.fail_payout(actor, data)
        return FailingPayout(payout=payout_view(payout, web.gateway.registry))

    @post("/advance-time", status_code=200, summary="Let time pass", opt=needs("payments"))
    async def advance_time(
        self, data: JSONBody[AdvanceTime], actor: NamedDependency[Actor], web: NamedDependency[Web]
    ) -> ChainsAnswer:
        """Let time pass, so that payments expire: everything on the chains becomes so much older."""
        return ChainsAnswer(chains=await web.sandbox.advance_time(actor, data))


controllers = [key_routes("/api/sandbox", SandboxChains), project_routes("/sandbox", SandboxChains)]
