"""Telling merchants: the ``outbox``, the ``delivery`` with its retries, and the ``sender``, which signs what leaves."""
