"""Reports of a run as text, JSON, Markdown, GitHub annotations and SARIF."""
