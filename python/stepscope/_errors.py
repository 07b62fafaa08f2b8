"""The one exception of the package: what the core's Error says, with its parts as attributes."""

from __future__ import annotations


class StepscopeError(Exception):
    """What could not be done, where, and what to do about it.

    kind is one of not_found, unreadable, unrecognized, malformed, too_large, changed, unsupported, usage, internal;
    offset counts bytes of the uncompressed text of file.
    """

    def __init__(
        self,
        message: str,
        kind: str = "internal",
        file: str | None = None,
        offset: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.file = file
        self.offset = offset
        self.hint = hint

    def __str__(self) -> str:
        place = self.file or ""
        if place and self.offset is not None:
            place += f" (byte {self.offset})"
        text = f"{place}: {self.message}" if place else self.message
        between = " " if text.endswith("?") else ". "
        return text + between + self.hint[0].upper() + self.hint[1:] if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.kind, self.file, self.offset, self.hint)
