"""Progress as lines of JSON on standard output: the command line shows them."""

from __future__ import annotations

import json
import sys

PREFIX = "draft> "


def say(stage: str, **facts: object) -> None:
    sys.stdout.write(PREFIX + json.dumps({"stage": stage, **facts}) + "\n")
    sys.stdout.flush()
