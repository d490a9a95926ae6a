"""Operations: what a delta says becomes edits, and edits become text with fences."""
