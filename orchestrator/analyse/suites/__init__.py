"""What the suites' records show: one module a suite."""
