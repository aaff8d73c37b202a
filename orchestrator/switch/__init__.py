"""The canary switch, thought through: which arm answers a request, and what may change that.

Pure: no ray, no HTTP, no clock (the time is handed in), no randomness but hashes of what a request
brings. `orchestrator.serving.switch` puts it behind HTTP.
"""
