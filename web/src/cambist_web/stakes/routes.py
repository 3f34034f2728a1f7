"""What the operator stakes of the platform's own coin, so that fees need not be burned."""

from __future__ import annotations

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from cambist.services.sending.gas import stakes
from cambist.services.supported import find_chain
from cambist_web.context import Web
from cambist_web.parameters import NonEmptyFilter

from .schemas import StakeAsked, StakeBody, StakeList, stake_view


class Stakes(Controller):
    """Changes of the gas stations' stakes."""

    tags = ("Operator",)

    @post("/", status_code=201, summary="Change a stake")
    async def change(self, data: JSONBody[StakeBody], web: NamedDependency[Web]) -> StakeAsked:
        """Have the gas station `stake` coin, `unstake` it, or `withdraw` what has waited long enough.

        It is sent by the worker, as everything is; one change at a time.
        """
        registry = web.gateway.registry
        info = find_chain(registry.chains, data.chain)
        units = stakes.read_amount(info, data.action, data.amount)
        async with web.db.transaction() as conn:
            reference = await stakes.request_stake(conn, web.gateway.ids, info, data.action, units, web.clock.now())
            found = await stakes.list_stake_requests(conn, info.id)
        await web.gateway.hints.publish("outbound")
        (made,) = [one for one in found if one.reference == reference]
        return StakeAsked(stake=stake_view(registry, made))

    @get("/", summary="List changes of stakes")
    async def list(self, web: NamedDependency[Web], chain: NonEmptyFilter = None) -> StakeList:
        """Return the latest changes that were asked for. What is staked now is told with the gas stations."""
        registry = web.gateway.registry
        async with web.db.autocommit() as conn:
            found = await stakes.list_stake_requests(conn, chain)
        return StakeList(stakes=[stake_view(registry, one) for one in found])
