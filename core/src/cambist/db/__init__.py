"""The database: its tables, the door to it, and how it is brought up to date."""
