"""``cambist migrate``."""

from __future__ import annotations

import asyncpg
import click
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from cambist.db.migrations import UnknownRevisionError, newest_revision
from cambist.db.migrations import migrate as bring_up_to_date
from cambist.settings import SettingsError

from .opened import reason
from .options import Invocation, settings_options
from .terminal import echo


@click.command()
@settings_options
def migrate(invocation: Invocation) -> None:
    """Bring the database up to date. Harmless to repeat."""
    settings = invocation.settings()
    if settings.database.url is None:
        raise SettingsError("database.url must be set; an embedded database is brought up to date by 'cambist up'.")
    try:
        bring_up_to_date(settings.database.url)
    except (ValueError, ArgumentError) as error:  # whose words repeat what may be part of a password
        raise SettingsError(f"database.url is no address that can be used: {type(error).__name__}.") from None
    except (OSError, SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise click.ClickException(f"The database cannot be reached: {reason(error)}.") from error
    except UnknownRevisionError as error:
        raise click.ClickException(str(error)) from None
    echo(f"The database is at revision {newest_revision()}.")
