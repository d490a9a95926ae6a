"""Commands that are killed at every moment between two system calls on the project's files: the old state, the new one, or mended."""
