"""Hours of load, read: trends, steps, leaks, stalls, and what became of bursts and faults. Pure."""
