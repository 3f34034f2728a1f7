"""A payment as anybody sees it who has its link."""

from __future__ import annotations

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from cambist.services.receiving.payments.read import get_public
from cambist_web.context import Web

from .schemas import PublicAnswer


class PublicPayments(Controller):
    """Payments by their public id."""

    tags = ("Payments",)

    @get("/{public_id:str}", summary="Read a payment as its customer")
    async def read(self, public_id: FromPath[str], web: NamedDependency[Web]) -> PublicAnswer:
        """Return what to pay and where, and the transfers that have come, without anything about who pays."""
        return PublicAnswer(payment=await get_public(web.db, web.gateway.registry.chains, public_id))
