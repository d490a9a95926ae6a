"""Manifests from YAML to models: read, checked, every error with its line."""
