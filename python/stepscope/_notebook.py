"""Tables and a picture, shown where the user is: in the cell of a notebook, else as text and as a file."""

from __future__ import annotations

import os
import sys

from stepscope._errors import StepscopeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Union

    import pandas

    PathLike = Union[str, os.PathLike[str]]

ENDINGS = (".png", ".svg", ".pdf")
ROWS_SHOWN = 100  # of a table; the DataFrames have all, and the columns of which nothing is known


def need(*packages: str) -> None:
    """Refuses with the command that installs what is missing."""
    from importlib.util import find_spec

    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        what = " ".join(missing)
        raise StepscopeError(f"this needs {' and '.join(missing)}", "unsupported", hint=f"Run `pip install {what}`")


def in_notebook() -> bool:
    """Whether a kernel runs this process; a script and IPython in a terminal show text only."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def check_picture_path(to: PathLike | None) -> None:
    """Refuses a file that could not be written in the end, before any work is done for it."""
    if to is None:
        return
    need("matplotlib")
    path = os.fspath(to)
    if not path.lower().endswith(ENDINGS):
        raise StepscopeError(f"{path!r} is no picture", "usage", hint=f"End it in {', '.join(ENDINGS)}")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise StepscopeError("this folder does not exist", "not_found", folder, hint="Make it, or name another one")


def show_tables(tables: Iterable[tuple[str, str, pandas.DataFrame]], notes: Iterable[str]) -> None:
    """Each table as (name, sentence, frame), then the notes. A table without rows is left out."""
    for name, sentence, frame in tables:
        if len(frame) == 0:
            continue
        cut = f" (first {ROWS_SHOWN} of {len(frame)} rows)" if len(frame) > ROWS_SHOWN else ""
        _say(f"{name}: {sentence}{cut}")
        shown = frame.dropna(axis="columns", how="all").head(ROWS_SHOWN)
        if in_notebook():
            from IPython.display import display

            display(shown)
        else:
            print(shown.to_string(index=False, float_format="{:.4g}".format, na_rep="unknown"), "\n")
    for note in notes:
        _say(note)


def show_picture(draw: Callable[[], Any], to: PathLike | None, call: str) -> None:
    """draw() gives a matplotlib Figure. `to`: the file to write. `call`: what writes one, for who sees none."""
    if to is None and not in_notebook():
        print(f"For the picture: {call}")
        return
    need("matplotlib")
    figure = draw()
    if to is not None:
        try:
            figure.savefig(to)
        except OSError as problem:
            raise StepscopeError(f"could not be written: {problem.strerror}", "unreadable", os.fspath(to)) from None
        _say(f"wrote {os.fspath(to)}")
    if in_notebook():
        from io import BytesIO

        from IPython.display import Image, display

        png = BytesIO()
        figure.savefig(png, format="png")
        display(Image(png.getvalue()))


def _say(text: str) -> None:
    print(text)  # notebooks show what is printed, in its place between the tables
