"""The world over HTTP: the load generator, the probe of a server's counters, and their calibration.

Kept empty on purpose: a worker process imports this package and must be up at once.
"""
