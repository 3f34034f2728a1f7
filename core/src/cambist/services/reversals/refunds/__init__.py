"""Refunds: what was received is sent back, out of what is held of it first."""
