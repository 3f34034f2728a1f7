"""The endpoints: a module for each noun, with the bodies it takes, what it answers, and the paths it is mounted at."""
