"""What the project's own checks are made of; the scripts beside it are thin entries."""
