"""Does the code of an answer pass its asserts?"""

from __future__ import annotations

import hashlib
import re

from orchestrator.run.suites.tasks.sandbox import Ending, Limits, SandboxResult, run_python
from orchestrator.run.suites.tasks.task import Checked, Task

_BLOCK = re.compile(r"```[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)


def check_code(task: Task, answer: str, limits: Limits | None = None) -> Checked:
    """Runs the answer's code and then the task's asserts in a sandbox.

    Passed only when the asserts were reached and none raised: code that ends the process early
    (`sys.exit(0)`) does not pass.
    """
    if task.tests is None:
        raise ValueError(f"{task.id}: a code task needs tests")
    code = code_of(answer)
    if code is None:
        return Checked(task.id, False, "no code in the answer")
    result = run_python(program(code, task.tests), limits or Limits())
    return Checked(task.id, _passed(result, task.tests), _why(result))


def code_of(answer: str) -> str | None:
    """The Python code of an answer: all fenced blocks marked python, else all fenced blocks, else
    the whole answer if it looks like code.

    Undefined: None when there is nothing like code.
    """
    blocks = _BLOCK.findall(answer)
    marked = [body for language, body in blocks if language.lower() in ("python", "py", "python3")]
    chosen = marked or [body for language, body in blocks if not language]
    if chosen:
        return "\n".join(chosen)
    return answer if re.search(r"^(?:def|from|import|class) ", answer, re.MULTILINE) else None


def program(code: str, tests: str) -> str:
    """What runs in the sandbox. The code is quoted, so that nothing in it escapes the frame."""
    return (
        "space = {'__name__': 'answer'}\n"
        f"exec(compile({code!r}, 'answer.py', 'exec'), space)\n"
        f"exec(compile({tests!r}, 'tests.py', 'exec'), space)\n"
        f"print()\nprint({_mark(tests)!r})\n"
    )


def _mark(tests: str) -> str:
    """What a run prints when it got to its end; the code under test does not know it."""
    return "reached " + hashlib.sha256(tests.encode()).hexdigest()[:16]


def _passed(result: SandboxResult, tests: str) -> bool | None:
    if result.ending is Ending.NOT_STARTED:
        return None
    lines = result.stdout.rstrip("\n").rsplit("\n", 1)
    return result.ending is Ending.EXITED_0 and lines[-1] == _mark(tests)


def _why(result: SandboxResult) -> str:
    last = result.stderr.strip().rsplit("\n", 1)[-1]
    return f"{result.ending}{': ' + last if last else ''}"
