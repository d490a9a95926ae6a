"""Random deltas over all releases, none silently misplaced."""
