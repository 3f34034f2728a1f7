"""``cambist keys``: the keystore in the operator's hands."""

from __future__ import annotations

from pathlib import Path

import click

from cambist.ports import system_ids
from cambist.services.keystore import PASSPHRASE_CHARS_MIN, Keystore, KeystoreError, new_keystore, save_keystore

_WARNING = """
These {count} words are the money. Whoever reads them can take it; without them and the
keystore's passphrase it is lost. Write them on paper now: they are not shown again.
"""


@click.group()
def keys() -> None:
    """Make the keystore that all addresses come from."""


@keys.command()
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Read the passphrase from this file instead of asking.",
)
@click.option("--import", "imports", is_flag=True, help="Ask for the words of an existing mnemonic.")
def init(path: Path, passphrase_file: Path | None, *, imports: bool) -> None:
    """Make a keystore at PATH, and show its mnemonic once.

    A file that exists is never replaced.
    """
    if path.exists():
        raise click.ClickException(f"{path} exists already and is not replaced.")
    ids = system_ids()
    try:
        keystore = Keystore(click.prompt("Mnemonic", hide_input=True)) if imports else new_keystore(ids.random_bytes)
        save_keystore(path, keystore, _passphrase(passphrase_file), ids.random_bytes)
    except KeystoreError as error:
        raise click.ClickException(str(error)) from error
    if not imports:
        words = keystore.mnemonic.split()
        click.echo(_WARNING.format(count=len(words)))
        for row in range(0, len(words), 6):
            click.echo(
                "  " + "  ".join(f"{row + at + 1:2d} {word:10s}" for at, word in enumerate(words[row : row + 6]))
            )
    click.echo(f"\nThe keystore is {path}. Set keys.keystore and keys.passphrase to use it.")


def _passphrase(file: Path | None) -> str:
    if file is not None:
        try:
            return file.read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise click.ClickException(f"{file} cannot be read: {reason}.") from error
    prompt = f"Passphrase (at least {PASSPHRASE_CHARS_MIN} characters)"
    answer: str = click.prompt(prompt, hide_input=True, confirmation_prompt=True)
    return answer
