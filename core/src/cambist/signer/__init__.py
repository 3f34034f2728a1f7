"""The signer: keys, and rules of its own about what may be signed with them.

``protocol`` is what the gateway asks. ``reading`` finds out what a payload does and whose money it moves; ``rules``
are the operator's; ``policy`` refuses what they forbid; ``store`` remembers what was signed. ``local`` puts them
together in one process, ``server`` and ``remote`` across two.
"""

from .protocol import KeyPath, Signer, SignerUnavailableError, SignReply, SignRequest, XpubSource

__all__ = ["KeyPath", "SignReply", "SignRequest", "Signer", "SignerUnavailableError", "XpubSource"]
