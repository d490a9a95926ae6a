"""The second proof, by libcst: from upstream's file and the generated module alone."""
