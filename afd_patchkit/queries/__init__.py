"""Questions that write nothing: inventory, differences, previews, facts of entries and pins."""
