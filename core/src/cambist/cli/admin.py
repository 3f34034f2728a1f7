"""``cambist admin``: the people who run the gateway, from the machine that it runs on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.ports import SystemClock, system_ids
from cambist.services.audit.entries import Action, record
from cambist.services.errors import ConflictError
from cambist.services.identity import merchants, operators
from cambist.services.identity.operators import ROLES, OperatorView, Role
from cambist.services.identity.passwords import Passwords
from cambist.services.listing import Part, Sort
from cambist.services.paging import LIMIT_MAX
from cambist.settings import Settings

from .opened import answer, opened_database, person
from .options import Invocation, settings_options
from .web import export_listener

WHY = "'cambist admin' changes who may run a gateway."
NO_LINK = "Sign in with the password; the first time, an authenticator is enrolled."

Act = Callable[[AsyncConnection], Awaitable[Sequence[str]]]

port_option = click.option(
    "--port", type=click.IntRange(1, 65535), help="The port in the link, over web.port: that of 'cambist up --port'."
)


@click.group()
def admin() -> None:
    """Say who may run the gateway: people who sign in, each with a role."""


@admin.command()
@settings_options
@click.argument("email", metavar="EMAIL")
@click.option("--name", required=True, help="What the person is called.")
@click.option("--role", type=click.Choice(ROLES), required=True)
@click.option("--ask-password", is_flag=True, help="Ask for a password here, in the place of a link that sets one.")
@port_option
def create(  # noqa: PLR0913  what the command takes
    invocation: Invocation, email: str, name: str, role: Role, *, ask_password: bool, port: int | None
) -> None:
    """Add an operator with this EMAIL, and print a link that sets the password, once.

    The link leads to web.admin_url, web.public_url or where web listens, as the settings say.
    """
    settings = _settings(invocation, port)
    typed = click.prompt("Password", hide_input=True, confirmation_prompt=True) if ask_password else None
    _answer(settings, lambda conn: _create(conn, settings, email, name, role, typed))


async def _create(  # noqa: PLR0913, PLR0917  what the command takes
    conn: AsyncConnection, settings: Settings, email: str, name: str, role: Role, typed: str | None
) -> Sequence[str]:
    email, name = merchants.normalize_email(email), merchants.check_name(name)
    ids, now = system_ids(), SystemClock().now()
    passwords = Passwords(ids.random_bytes)
    # Without one that somebody chose it is one that nobody knows.
    chosen = passwords.hash(ids.hex_secret()) if typed is None else passwords.hash_new(typed, [email, name])
    try:
        made = await operators.add(
            conn, email=email, name=name, role=role, password_hash=await chosen, ids=ids, now=now
        )
    except ConflictError as error:
        # Perhaps made by a command that was ended before it printed the link.
        raise click.ClickException(f"{error.message} 'cambist admin link {email}' prints another link.") from error
    told = {"email": email, "role": role}
    await record(conn, person(), Action.OPERATOR_MADE, now, subject=made.operator_id, details=told, line=False)
    return [made.operator_id, *(await _link(conn, settings, email) if typed is None else [NO_LINK])]


@admin.command("list")
@settings_options
def list_(invocation: Invocation) -> None:
    """List the operators, oldest first."""
    _answer(invocation.settings(), _listed)


async def _listed(conn: AsyncConnection) -> Sequence[str]:
    lines: list[str] = []
    page = 0
    while True:
        page += 1
        found = await operators.list_operators(conn, Part(page=page, limit=LIMIT_MAX, sort=Sort.OLDEST))
        lines += [_line(one) for one in found.items]
        if len(found.items) < LIMIT_MAX:
            return lines or ["There are no operators."]


@admin.command()
@settings_options
@click.argument("email", metavar="EMAIL")
def disable(invocation: Invocation, email: str) -> None:
    """Let the operator with this EMAIL in no more, and end all sessions."""

    async def act(conn: AsyncConnection) -> Sequence[str]:
        now, operator_id = SystemClock().now(), await _id_of(conn, email)
        view = await operators.disable(conn, operator_id, now=now)
        await record(conn, person(), Action.OPERATOR_DISABLED, now, subject=operator_id, line=False)
        return [_line(view)]

    _answer(invocation.settings(), act)


@admin.command()
@settings_options
@click.argument("email", metavar="EMAIL")
def enable(invocation: Invocation, email: str) -> None:
    """Let the operator with this EMAIL in again."""

    async def act(conn: AsyncConnection) -> Sequence[str]:
        now, operator_id = SystemClock().now(), await _id_of(conn, email)
        view = await operators.enable(conn, operator_id)
        await record(conn, person(), Action.OPERATOR_ENABLED, now, subject=operator_id, line=False)
        return [_line(view)]

    _answer(invocation.settings(), act)


@admin.command("set-role")
@settings_options
@click.argument("email", metavar="EMAIL")
@click.argument("role", type=click.Choice(ROLES), metavar="ROLE")
def set_role(invocation: Invocation, email: str, role: Role) -> None:
    """Give the operator with this EMAIL another ROLE: owner, operator, support or auditor."""

    async def act(conn: AsyncConnection) -> Sequence[str]:
        now, operator_id = SystemClock().now(), await _id_of(conn, email)
        view, former = await operators.set_role(conn, operator_id, role)
        done, told = Action.OPERATOR_ROLE_CHANGED, {"role": role, "former_role": former}
        await record(conn, person(), done, now, subject=operator_id, details=told, line=False)
        return [_line(view)]

    _answer(invocation.settings(), act)


@admin.command("reset-two-factor")
@settings_options
@click.argument("email", metavar="EMAIL")
@port_option
def reset_two_factor(invocation: Invocation, email: str, port: int | None) -> None:
    """Forget authenticator and password of the operator with this EMAIL, and print a link that sets a password, once.

    The sign-in after that enrols another authenticator.
    """
    settings = _settings(invocation, port)

    async def act(conn: AsyncConnection) -> Sequence[str]:
        ids, now, operator_id = system_ids(), SystemClock().now(), await _id_of(conn, email)
        password_hash = await Passwords(ids.random_bytes).hash(ids.hex_secret())
        token = await operators.reset_two_factor(
            conn,
            merchants.spelling_of(email),
            password_hash=password_hash,
            ids=ids,
            now=now,
            lifetime_s=settings.auth.password_reset_s,
        )
        await record(conn, person(), Action.TWO_FACTOR_RESET, now, subject=operator_id, line=False)
        return [_line(await operators.read(conn, operator_id)), *_shown(settings, token)]

    _answer(settings, act)


@admin.command()
@settings_options
@click.argument("email", metavar="EMAIL")
@port_option
def link(invocation: Invocation, email: str, port: int | None) -> None:
    """Print a link by which the operator with this EMAIL sets a new password, once."""
    settings = _settings(invocation, port)

    async def act(conn: AsyncConnection) -> Sequence[str]:
        now, operator_id = SystemClock().now(), await _id_of(conn, email)
        await record(conn, person(), Action.PASSWORD_RESET_ISSUED, now, subject=operator_id, line=False)
        return await _link(conn, settings, merchants.spelling_of(email))

    _answer(settings, act)


def _settings(invocation: Invocation, port: int | None) -> Settings:
    export_listener(None, port)
    return invocation.settings()


async def _id_of(conn: AsyncConnection, email: str) -> str:
    return await operators.id_of(conn, merchants.spelling_of(email))


async def _link(conn: AsyncConnection, settings: Settings, email: str) -> Sequence[str]:
    lifetime_s = settings.auth.password_reset_s
    token = await operators.issue_link(conn, email, ids=system_ids(), now=SystemClock().now(), lifetime_s=lifetime_s)
    return _shown(settings, token)


def _shown(settings: Settings, token: str) -> Sequence[str]:
    lifetime_s, url = settings.auth.password_reset_s, operators.password_link(settings.web, token)
    return [f"Whoever opens this first sets the password, within {lifetime_s // 60} minutes:", url]


def _line(view: OperatorView) -> str:
    state = "disabled" if view.disabled_at is not None else "active" if view.has_two_factor else "not signed in yet"
    return f"{view.operator_id}  {view.role:<8}  {view.email}  {view.name}  {state}"


def _answer(settings: Settings, act: Act) -> None:
    async def done() -> Sequence[str]:
        async with opened_database(settings, "admin", WHY) as database, database.transaction() as conn:
            return await act(conn)

    answer(done())
