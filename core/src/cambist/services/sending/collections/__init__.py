"""Deposits brought from one-time addresses to the merchant's main wallet."""
