"""How numbers are written, in one place: the same in every locale."""
from __future__ import annotations

import re

NOT_KNOWN = "n/a"


def count(value):
    """1024 -> 1k, 1048576 -> 1M where that is exact, else the digits."""
    for size, letter in ((1 << 20, "M"), (1 << 10, "k")):
        if value >= size and value % size == 0:
            return f"{value // size}{letter}"
    return str(value)


def significant(value, digits=3):
    """Plain decimals, never an exponent: 0.00123, 12.3, 12345."""
    if value is None:
        return NOT_KNOWN
    if value == 0:
        return "0"
    rounded = abs(float(f"{value:.{digits - 1}e}"))  # 99.99 has the digits of 100
    magnitude = len(str(int(rounded))) if rounded >= 1 else -len(f"{rounded:.12f}"[2:]) + len(
        f"{rounded:.12f}"[2:].lstrip("0"))
    return f"{value:.{max(0, digits - magnitude)}f}"


def gigabytes(value):
    """Bytes per second as GB/s."""
    return NOT_KNOWN if value is None else f"{value * 1e-9:.0f}" if value >= 1e10 else significant(value * 1e-9)


def fraction(value):
    return NOT_KNOWN if value is None else f"{value:.2f}" if value >= 0.095 else f"{value:.3f}"


def microseconds(value):
    return NOT_KNOWN if value is None else significant(value * 1e6, 4)


def digits(value):
    """Up to three digits of a factor, for tables to read at a glance: 0.97, 1.5, 41, 301."""
    return NOT_KNOWN if value is None else significant(value, 2)


def percent(value):
    return NOT_KNOWN if value is None else f"{value * 100:.1f} %"


def times(value):
    """A factor: ×0.25, ×1.97, ×12.3."""
    return NOT_KNOWN if value is None else f"×{significant(value)}"


def several(number, noun, plural=""):
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def sentence(text):
    """A message of some program as a sentence."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


def listed(words, last="and"):
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def first_few(items, most=3):
    """a, b, c and 5 more."""
    items = list(items)
    return listed(items[:most] + ([f"{len(items) - most} more"] if len(items) > most else []))


def machine(label):
    """A label in a sentence: a bare commit is called one."""
    return f"commit {label}" if re.fullmatch(r"[0-9a-f]{7}(-dirty)?", label) else label


def status(point):
    """One word; loud where a result cannot be trusted."""
    return {"wrong": "WRONG", "failed": "FAILED"}.get(point.status, point.status)


def cell_word(point):
    """What stands where a point has no number."""
    return NOT_KNOWN if point.status == "right" else status(point)
