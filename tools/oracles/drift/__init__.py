"""What the releases changed about functions that plugins depend on."""
