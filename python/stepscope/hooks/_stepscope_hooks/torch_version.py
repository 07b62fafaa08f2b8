"""Which torch is this, for the few faults of older ones that cannot be seen but by their version."""

from __future__ import annotations

import re


def before(major: int, minor: int) -> bool:
    """Whether torch is older than this; a torch that does not tell its version is not."""
    import torch

    numbers = [int(digits) for digits in re.findall(r"\d+", str(getattr(torch, "__version__", "")))[:2]]
    return len(numbers) == 2 and numbers < [major, minor]
