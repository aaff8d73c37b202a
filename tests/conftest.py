"""Settings of the whole test run."""

import signal

from hypothesis import settings

# How long an example takes is the machine's affair: a test never depends on it.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# A test run that a script starts in the background inherits "ignore SIGINT", and so would every
# process that a test starts and interrupts. A handler of our own is not inherited: they get the
# default again.
signal.signal(signal.SIGINT, signal.default_int_handler)
