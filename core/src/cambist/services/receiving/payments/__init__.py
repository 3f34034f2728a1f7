"""Payments: made, quoted, listed, shown to customers, and told to merchants."""
