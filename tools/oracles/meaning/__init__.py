"""Changes of what our own code refers to: what the engine says of each, against a world in which that code is run."""
