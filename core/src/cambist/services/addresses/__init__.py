"""Addresses of ours, derived from account keys, and checks of addresses that merchants name."""
