"""Everything that there is to report: findings, their pages, and errors that carry them."""
