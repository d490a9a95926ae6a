"""What our own code refers to: one model for names, attributes, calls and bases, at the pin and on an upgrade."""
