"""Who may still read the streams that are open: asked for all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from cambist.db.engine import Database
from cambist.services.identity.members import Member
from cambist.services.identity.operators import Operator, OperatorPrincipal
from cambist.services.identity.sessions import SessionPrincipal, Sessions

from .viewers import Viewer


class Checks:
    """Asks whose sessions are still open, and with which access."""

    def __init__(
        self,
        db: Database,
        members: Sessions[Member, SessionPrincipal],
        operators: Sessions[Operator, OperatorPrincipal],
    ) -> None:
        self._db = db
        self._members = members
        self._operators = operators

    async def principals(
        self, viewers: Iterable[Viewer], now: datetime
    ) -> Mapping[str, SessionPrincipal | OperatorPrincipal]:
        """Return the principals of the sessions that are open, by session."""
        of_members, of_operators = [], []
        for viewer in viewers:
            if isinstance(viewer.principal, SessionPrincipal):
                of_members.append(viewer.principal.session_id)
            elif viewer.principal is not None:
                of_operators.append(viewer.principal.session_id)
        found: dict[str, SessionPrincipal | OperatorPrincipal] = {}
        async with self._db.autocommit() as conn:
            if of_members:
                found |= await self._members.open_ones(conn, of_members, now=now)
            if of_operators:
                found |= await self._operators.open_ones(conn, of_operators, now=now)
        return found
