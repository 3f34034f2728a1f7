"""Swaps over 1inch: quotes and calls from its API, and a reader that believes neither."""
