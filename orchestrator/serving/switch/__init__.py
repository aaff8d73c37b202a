"""The canary switch at work: an ingress of Ray Serve before two engines, and a keeper."""
