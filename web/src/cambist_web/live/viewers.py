"""Who reads a stream, and what of all changes is for them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from cambist.services.changes import Change
from cambist.services.identity.operators import OperatorPrincipal
from cambist.services.identity.sessions import SessionPrincipal

from .messages import OF_MERCHANTS, OF_PROJECTS, OF_TEAMS, WHOLE_MERCHANTS


class Viewer(Struct, frozen=True, kw_only=True):
    """Somebody who reads one stream, with the access of the moment at which it was opened.

    ``person`` is who its streams are counted for. ``principal`` is None for a program with the admin key, whose access
    ends with the process; ``expires_at`` is when the access token is good no more. ``merchant_pk`` is None for
    operators. ``project_pks`` are those that are open to a member, None where all are; ``modes`` are their modes.
    ``kinds`` and ``mode`` are what was asked for, None for all.
    """

    person: str
    principal: SessionPrincipal | OperatorPrincipal | None
    expires_at: datetime | None
    merchant_pk: int | None = None
    project_pks: Collection[int] | None = None
    modes: Collection[str] = ()
    kinds: Collection[str] | None = None
    mode: str | None = None

    def sees(self, change: Change) -> bool:
        """Tell whether a change is for this viewer, and of what was asked for."""
        if (self.kinds is not None and change.kind not in self.kinds) or (
            self.mode is not None and change.mode not in {None, self.mode}
        ):
            return False
        return self.merchant_pk is None or self._may_see(change)

    def _may_see(self, change: Change) -> bool:
        if change.merchant_pk != self.merchant_pk or change.kind not in OF_MERCHANTS:
            return False
        if self.project_pks is None or change.kind in OF_TEAMS:
            return True
        if change.kind in WHOLE_MERCHANTS:
            return False
        if change.project_pk is None:
            return change.mode in self.modes and change.kind not in OF_PROJECTS
        return change.project_pk in self.project_pks

    def has_same_access(self, now: SessionPrincipal | OperatorPrincipal) -> bool:
        """Tell whether the session still has the access with which the stream was opened."""
        before = self.principal
        if isinstance(before, SessionPrincipal) and isinstance(now, SessionPrincipal):
            return (before.role, before.project_pks) == (now.role, now.project_pks)
        return before is not None and (before.person_id, before.role) == (now.person_id, now.role)
