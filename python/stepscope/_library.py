"""The library, loaded at first use: importing ctypes alone takes longer than importing the rest of this package."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope._native import Handle, Library


def library() -> Library:
    from stepscope import _native

    return _native.library()


def new_handle(value: int) -> Handle:
    from stepscope import _native

    return _native.Handle(value)
