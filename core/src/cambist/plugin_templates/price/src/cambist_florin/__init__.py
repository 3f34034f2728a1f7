"""Cambist's plugin for the prices of Florin."""
