"""Tasks whose answers can be checked by a program: arithmetic, extraction, code.

Simple on purpose: a small model should get some right and some wrong, since tasks that all answers
pass or fail cannot tell two arms apart.
"""
