"""What commands write: nothing that a stranger wrote moves the cursor, or lets one text look like another."""

from __future__ import annotations

import click

from cambist.plugin import printable


def echo(text: str | bytes, *, err: bool = False) -> None:
    """Write lines to the terminal, with what cannot be seen written out. JSON stays JSON."""
    told = text.decode() if isinstance(text, bytes) else text
    click.echo(printable(told, lines=True), err=err)
