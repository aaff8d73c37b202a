"""This host: what it is, how busy it is, and running without Ray."""
