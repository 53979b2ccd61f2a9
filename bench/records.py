"""What the measuring programs beside this file write, and what they say of where it comes from."""
import datetime
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write(path, report):
    """The report as JSON, whole or not at all. Raises OSError where that cannot be, ValueError for NaN and infinity."""
    target = Path(path)
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n")
    unfinished.replace(target)


def commit():
    """Of this folder; empty where there is no git."""
    return subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
                          capture_output=True, text=True).stdout.strip()


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
