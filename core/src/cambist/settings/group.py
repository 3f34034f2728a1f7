"""What every table of the file is made of."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Port = Annotated[int, Meta(ge=1, le=65535)]
Address = Annotated[str, Meta(min_length=1, max_length=4096)]


class Group(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file. Its representation names it and nothing else."""

    def __repr__(self) -> str:
        """Show no values, so that no log or traceback shows a secret."""
        return f"<{type(self).__name__}>"
