"""One run of `regen` or `check`: pins opened, modules made, lock built, compared or written."""
