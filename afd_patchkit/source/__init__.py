"""Files and what stands in them: text, tokens, syntax, symbols, signatures."""
