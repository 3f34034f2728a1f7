"""``cambist migrate``."""

from __future__ import annotations

import click

from cambist.db.migrations import UnknownRevisionError, newest_revision
from cambist.db.migrations import migrate as bring_up_to_date
from cambist.settings import SettingsError

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
    except OSError as error:
        raise click.ClickException(f"The database cannot be reached: {error}.") from error
    except UnknownRevisionError as error:
        raise click.ClickException(str(error)) from None
    echo(f"The database is at revision {newest_revision()}.")
