"""Hooks for build backends: the generated modules of a project enter its wheel, or the build fails."""
