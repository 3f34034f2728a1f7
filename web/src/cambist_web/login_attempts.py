"""Passwords that are shown, and how often somebody may be wrong about one.

Wrong ones are counted for the account and the address that shows them, so that nobody is kept out by what others try
elsewhere. All addresses together meet a much higher limit, which does not hold for an address that the person was
signed in from lately: however many addresses guess, the person gets in from the usual one.
"""

from __future__ import annotations

from cambist.services.errors import TooManyError, UnauthenticatedError
from cambist.services.identity import credentials, sessions
from cambist.services.identity.credentials import SignIn
from cambist.services.identity.people import P, People, V

from .context import Web
from .origin import Connection, address_of, host_of


async def check_password(
    web: Web, people: People[V, P], connection: Connection, email: str, password: str
) -> SignIn[V]:
    """Say whose password it is. A right one is not counted.

    Raises UnauthenticatedError, and TooManyError after too many wrong ones.
    """
    # Merchants and operators may have the same address; guesses at one are none at the other. Both kinds are named,
    # because whatever somebody typed stands in the place of the address.
    account = f"{people.kind} {email}"
    pair = f"{address_of(connection)} {account}"
    await web.limiter.take(web.limits.failed_login, pair)
    braked = await _is_braked(web, people, connection, email, account)
    wrong = False
    try:
        return await credentials.check_password(people, web.db, email=email, password=password, passwords=web.passwords)
    except UnauthenticatedError:
        wrong = True
        raise
    finally:
        if not wrong:
            await web.limiter.give_back(web.limits.failed_login, pair)
            if not braked:
                await web.limiter.give_back(web.limits.failed_login_anywhere, account)


async def _is_braked(web: Web, people: People[V, P], connection: Connection, email: str, account: str) -> bool:
    """Return whether the account's own limit is reached. Raises TooManyError where that is to be refused."""
    try:
        await web.limiter.take(web.limits.failed_login_anywhere, account)
    except TooManyError:
        async with web.db.autocommit() as conn:
            if not await sessions.has_come_from(conn, people, email, host_of(connection)):
                raise
        return True
    return False
