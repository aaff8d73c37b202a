"""Which cell is measured next: pure, seeded, and told everything it knows."""
