"""Make or repair the environment that the Makefile uses. Standard library only.

Runs uv from inside the environment. Three things pip cannot do by itself:

* The CPU build of vLLM wants the CPU build of PyTorch (`torch==X+cpu`), which is not on the default
  index. If pip is configured with a find-links folder that holds such a wheel, that is used;
  otherwise uv's own `--torch-backend cpu` takes it from PyTorch's index of CPU wheels.
* vLLM asks for torchvision, torchaudio and torchcodec, which text serving does not use and whose
  default builds clash with the CPU build of PyTorch: requirements/overrides.txt leaves them out.
* Versions are held to those tested: requirements/constraints.txt (no index is named there).

A stamp with a hash of what was asked is written last; without it, or when the installed packages
no longer import, the set-up is done again. uv only installs what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--extra", choices=["cpu", "gpu"], default="cpu")
    args = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - this runs before anything is installed
        return _fail(f"Python 3.11 or newer is needed, this is {platform.python_version()}")
    venv: Path = args.venv if args.venv.is_absolute() else ROOT / args.venv
    stamp, wanted = venv / f".ready-{args.extra}", _wanted(args.extra)
    if stamp.exists() and stamp.read_text() == wanted and not _missing(venv):
        return 0
    began = time.monotonic()
    _ensure_venv(venv)
    python = _python(venv)
    _ensure_uv(python)
    print(f"setup: installing into {venv.name} (extra {args.extra}); some GB, a minute or more …")
    stamp.unlink(missing_ok=True)
    status = _install(python, args.extra)
    if status == 0 and (damaged := _missing(venv)):
        print(f"setup: {', '.join(damaged)}: installed, but files are gone; installing all again …")
        status = _install(python, args.extra, again=True)
    if status != 0:
        return _fail(
            "the packages could not be installed (see above). Mend the cause and run the same "
            "command again: it goes on where it stopped"
        )
    if still := _missing(venv):
        return _fail(
            f"installed, but {', '.join(still)} cannot be imported: see why with "
            f"{python} -c 'import {still[0]}', or begin anew with: make clean setup"
        )
    stamp.write_text(wanted)
    print(f"setup: ready in {time.monotonic() - began:.0f} s")
    return 0


def _wanted(extra: str) -> str:
    """A hash of everything that decides what gets installed."""
    digest = hashlib.sha256(extra.encode())
    for path in (
        ROOT / "pyproject.toml",
        REQUIREMENTS / "constraints.txt",
        REQUIREMENTS / "overrides.txt",
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_NEEDED = [
    "ray", "mlflow", "pydantic", "pandas", "pyarrow", "vllm", "torch", "httptools", "pytest",
    "ruff", "orchestrator",
]  # fmt: skip


def _missing(venv: Path) -> list[str]:
    """Which packages that matter are not there, without importing them (that takes 20 s)."""
    code = (
        "import importlib.util as u, sys;"
        "print(*(n for n in sys.argv[1:] if u.find_spec(n) is None))"
    )
    try:
        told = subprocess.run(
            [_python(venv), "-c", code, *_NEEDED], capture_output=True, text=True, check=False
        )
    except OSError:
        return _NEEDED
    return told.stdout.split() if told.returncode == 0 else _NEEDED


def _ensure_venv(venv: Path) -> None:
    python = _python(venv)
    works = (
        python.exists()
        and subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0
    )
    if not works:
        if venv.exists():
            print(f"setup: {venv.name} is broken, making it anew")
            shutil.rmtree(venv)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)


def _ensure_uv(python: Path) -> None:
    if subprocess.run([python, "-m", "uv", "--version"], capture_output=True).returncode != 0:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "uv>=0.5"], check=True)


def _install(python: Path, extra: str, *, again: bool = False) -> int:
    """`again`: packages that are recorded as installed too."""
    command: list[str | Path] = [
        python, "-m", "uv", "pip", "install", "--python", python,
        "--overrides", REQUIREMENTS / "overrides.txt",
        "--constraints", REQUIREMENTS / "constraints.txt",
        # Importing vLLM costs twice as much without compiled bytecode, in every engine process.
        "--compile-bytecode",
        "--editable", f"{ROOT}[{extra},dev]",
    ]  # fmt: skip
    command += ["--reinstall"] if again else []
    environment = dict(os.environ)
    if extra == "cpu":
        links = _find_links(python)
        if links:
            environment["UV_FIND_LINKS"] = ",".join(links)
        else:
            command += ["--torch-backend", "cpu"]
    return subprocess.run(command, env=environment, check=False).returncode


def _find_links(python: Path) -> list[str]:
    """Folders of pip's own find-links configuration that hold a CPU build of PyTorch."""
    seen = os.environ.get("PIP_FIND_LINKS", "").split()
    answer = subprocess.run(
        [python, "-m", "pip", "config", "get", "global.find-links"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    seen += answer.stdout.split()
    folders = [link for link in dict.fromkeys(seen) if Path(link).is_dir()]
    return [folder for folder in folders if list(Path(folder).glob("torch-*+cpu-*.whl"))]


def _python(venv: Path) -> Path:
    return venv / "bin" / "python"


def _fail(message: str) -> int:
    print(f"setup: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
