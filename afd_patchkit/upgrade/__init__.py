"""Two releases side by side: each entry and delta judged, what a person accepts, and `--write`."""
