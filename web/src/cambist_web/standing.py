"""Looking at a member again, for acts that leave access behind, as keys, secrets, addresses that money may go to do.

And for withdrawals, which take a person's code.

Such an act waits for locks, and who asked for it may be signed out, demoted or removed meanwhile::

    async with web.db.transaction() as conn:
        session = await still(conn, session, "keys", actor)
        ...
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.services.actor import Actor
from cambist.services.identity import members, merchants, projects
from cambist.services.identity.sessions import SessionPrincipal

from .permissions import check_role


async def still(
    conn: AsyncConnection, session: SessionPrincipal, permission: str, actor: Actor | None = None
) -> SessionPrincipal:
    """Wait for the merchant's lock, and return a member who may still do this, for this project.

    Nobody changes that until the transaction ends. ``permission`` is one of ``MEMBER_PERMISSIONS``. Raises
    UnauthenticatedError for a session that has ended, ForbiddenError for a role or a project that was taken away.
    """
    await merchants.lock_merchant(conn, session.merchant_pk)
    return await still_in_person(conn, session, permission, actor)


async def still_in_person(
    conn: AsyncConnection, session: SessionPrincipal, permission: str, actor: Actor | None = None
) -> SessionPrincipal:
    """Return such a member without the merchant's lock, for what leaves nothing behind that others look for."""
    session = await members.lock_member(conn, session)
    check_role(session, permission)
    if actor is not None:
        await projects.authorize(conn, session, actor.project_id)
    return session
