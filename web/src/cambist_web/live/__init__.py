"""Streams of what changes, for pages of merchants and operators."""
