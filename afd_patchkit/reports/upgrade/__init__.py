"""Reports of an upgrade, its page among them."""
