"""Is the output still right: suites that run on both arms."""
