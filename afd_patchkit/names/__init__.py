"""What the names of an entry mean upstream, and how they mean it in the generated module."""
