"""Many collections in one transaction, where the chain can."""
