"""Training a draft for a target: its own text, a head or a small model, and what it would accept.

A program of its own (`python -m orchestrator.serving.draft`), because it loads vLLM and torch.
"""
