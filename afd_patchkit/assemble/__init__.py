"""One entry, one module: copied, delegated or owned text, headers, imports, outline, and its proof."""
