"""Settings of the whole test run."""

from hypothesis import settings

# How long an example takes is the machine's affair: a test never depends on it.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
