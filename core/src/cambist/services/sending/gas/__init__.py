"""Who pays fees: the platform's gas stations, top-ups, stakes and loans of energy."""
