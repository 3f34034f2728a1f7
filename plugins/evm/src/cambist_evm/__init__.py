"""Cambist's plugin for Ethereum and every chain that speaks its protocol."""
