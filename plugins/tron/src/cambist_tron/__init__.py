"""Cambist's plugin for TRON."""
