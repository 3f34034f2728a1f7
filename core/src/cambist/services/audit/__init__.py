"""The audit log: who did what from where, in a table that is only appended to, and seals that show a later change."""
