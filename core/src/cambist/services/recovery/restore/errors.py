"""Why a restore stops."""

from __future__ import annotations


class RestoreError(Exception):
    """It cannot begin, or cannot go on; the message is a sentence for the operator."""
