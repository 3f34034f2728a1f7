"""Telling merchants: the outbox, the delivery with its retries, and the guarded way out."""
