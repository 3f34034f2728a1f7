"""A sandbox project's simulated chains: what a test makes happen on them."""

from __future__ import annotations

import msgspec
from litestar import Controller, post
from litestar.di import NamedDependency, Provide
from litestar.params import JSONBody

from cambist.services.actor import Actor
from cambist.services.payouts.views import payout_view
from cambist.services.sandbox import Sandbox
from cambist.services.sandbox.requests import AdvanceTime, Deposit, FailPayout, Mine, Reorg
from cambist_web.context import Web

from .schemas import ChainAnswer, ChainsAnswer, DepositAnswer, FailingPayout


async def _sandbox(web: NamedDependency[Web]) -> Sandbox:
    return web.sandbox


class SandboxChains(Controller):
    """The simulated chains of one project. Answers come when the gateway has read what they made happen."""

    tags = ("Sandbox",)
    dependencies = {"sandbox": Provide(_sandbox)}  # noqa: RUF012  Litestar's own way to declare it

    @post("/deposit", status_code=200, summary="Pay a payment")
    async def deposit(
        self, data: JSONBody[Deposit], actor: NamedDependency[Actor], sandbox: NamedDependency[Sandbox]
    ) -> DepositAnswer:
        """Send money to a payment's address, in a block of its own."""
        made = await sandbox.deposit(actor, data)
        return DepositAnswer(**msgspec.structs.asdict(made.state), tx_hash=made.tx_id, payment=made.payment)

    @post("/mine", status_code=200, summary="Mine blocks")
    async def mine(
        self, data: JSONBody[Mine], actor: NamedDependency[Actor], sandbox: NamedDependency[Sandbox]
    ) -> ChainAnswer:
        """Mine blocks, so that transfers get confirmations."""
        return ChainAnswer(**msgspec.structs.asdict(await sandbox.mine(actor, data)))

    @post("/reorg", status_code=200, summary="Replace blocks")
    async def reorg(
        self, data: JSONBody[Reorg], actor: NamedDependency[Actor], sandbox: NamedDependency[Sandbox]
    ) -> ChainAnswer:
        """Replace the newest blocks by others; what stood in them is dropped, or mined again in the next block."""
        return ChainAnswer(**msgspec.structs.asdict(await sandbox.reorg(actor, data)))

    @post("/fail-payout", status_code=200, summary="Have a payout fail")
    async def fail_payout(
        self,
        data: JSONBody[FailPayout],
        actor: NamedDependency[Actor],
        sandbox: NamedDependency[Sandbox],
        web: NamedDependency[Web],
    ) -> FailingPayout:
        """Have a payout, refund or withdrawal that is not mined yet fail when it is: its money comes back."""
        payout = await sandbox.fail_payout(actor, data)
        return FailingPayout(payout=payout_view(payout, web.gateway.registry))

    @post("/advance-time", status_code=200, summary="Let time pass")
    async def advance_time(
        self, data: JSONBody[AdvanceTime], actor: NamedDependency[Actor], sandbox: NamedDependency[Sandbox]
    ) -> ChainsAnswer:
        """Let time pass, so that payments expire: everything on the chains becomes so much older."""
        return ChainsAnswer(chains=await sandbox.advance_time(actor, data))
