"""Every function of a release, turned into an entry without deltas."""
