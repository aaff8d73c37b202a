"""A soak: load that goes on for hours, on both arms side by side."""
