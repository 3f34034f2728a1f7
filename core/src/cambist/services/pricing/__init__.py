"""Prices of tokens, what an order costs in tokens, and prices kept for statements."""
