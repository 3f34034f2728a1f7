"""Pure decisions: facts in, decision out. No I/O, no clock, nothing of the database."""
