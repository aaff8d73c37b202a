"""Prompt sets and arrival traces: read, checked, named by content, cut to length.

`load.load_prompts` reads a set, `length.control_length` fixes how long its prompts are,
`traces.load_trace` and `combine.combine` turn recorded arrivals into requests with real text.
Nothing heavy is imported before it is needed.
"""
