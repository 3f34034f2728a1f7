"""What commands write: nothing that a stranger wrote moves the cursor, or lets one text look like another."""

from __future__ import annotations

import click

from cambist.plugin import printable


def echo(text: str | bytes, *, mark: str = "", err: bool = False) -> None:
    """Write lines to the terminal, with what cannot be seen written out. JSON stays JSON.

    ``mark`` follows as it is: a text of our own, which may have a colour.
    """
    told = text.decode() if isinstance(text, bytes) else text
    click.echo(printable(told, lines=True) + mark, err=err)
