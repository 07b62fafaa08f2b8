"""libstepscope.so through ctypes: finding it, its functions, and turning its errors into StepscopeError.

Calls release the GIL (CDLL), so threads read beside each other. The library is loaded at first use, not at import.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref

from stepscope._errors import StepscopeError

TYPE_CHECKING = False  # typing and pathlib would double the time of the import
if TYPE_CHECKING:
    from pathlib import Path

ABI_VERSION = 5  # STEPSCOPE_ABI_VERSION that this package was written against
FILE_NAME = "libstepscope.so"


class Options(ctypes.Structure):
    """stepscope_options"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("use_cache", ctypes.c_int32),
        ("threads", ctypes.c_uint32),
        ("rules_path", ctypes.c_char_p),
        ("progress", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("peaks_path", ctypes.c_char_p),
        ("flop_rules_path", ctypes.c_char_p),
    ]


class QueryLimits(ctypes.Structure):
    """stepscope_query_limits"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("seconds", ctypes.c_double),
        ("rows", ctypes.c_uint64),
        ("memory_bytes", ctypes.c_uint64),
    ]


class ArrowSchema(ctypes.Structure):
    """Of the Arrow C data interface."""


class ArrowArray(ctypes.Structure):
    """Of the Arrow C data interface."""


class ArrowArrayStream(ctypes.Structure):
    """Of the Arrow C stream interface."""


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))),
    ("private_data", ctypes.c_void_p),
]
_stream = ctypes.POINTER(ArrowArrayStream)
ArrowArrayStream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, _stream, ctypes.POINTER(ArrowSchema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, _stream, ctypes.POINTER(ArrowArray))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, _stream)),
    ("release", ctypes.CFUNCTYPE(None, _stream)),
    ("private_data", ctypes.c_void_p),
]

_texts = ctypes.POINTER(ctypes.c_char_p)
_error = ctypes.POINTER(ctypes.c_void_p)
_FUNCTIONS = {
    "stepscope_version": (ctypes.c_char_p, []),
    "stepscope_abi_version": (ctypes.c_uint32, []),
    "stepscope_free_text": (None, [ctypes.c_void_p]),
    "stepscope_open": (ctypes.c_void_p, [_texts, ctypes.c_size_t, ctypes.POINTER(Options), _error]),
    "stepscope_close": (None, [ctypes.c_void_p]),
    "stepscope_answer_names": (ctypes.c_void_p, [_error]),
    "stepscope_report": (ctypes.c_void_p, [ctypes.c_void_p, _texts, ctypes.c_size_t, _error]),
    "stepscope_advise": (ctypes.c_void_p, [ctypes.c_void_p, _error]),
    "stepscope_tables": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int, _error]),
    "stepscope_table": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, _stream, _error]),
    "stepscope_query": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.POINTER(QueryLimits),
            _stream,
            ctypes.POINTER(ctypes.c_int32),
            _error,
        ],
    ),
    "stepscope_slice_text": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, _error]),
    "stepscope_memory_pages": (ctypes.c_int, [ctypes.c_char_p, _error]),
    "stepscope_stream_new": (_stream, []),
    "stepscope_stream_free": (None, [_stream]),
    "stepscope_capsule_setup": (None, [ctypes.c_void_p]),
    "stepscope_capsule_free": (None, [ctypes.c_void_p]),
    "stepscope_alive": (ctypes.c_int64, []),
}

# Prototypes of our own: those of ctypes.pythonapi's functions are shared by the whole process.
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, _stream, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_set_context = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _stream)(
    ("PyCapsule_SetContext", ctypes.pythonapi)
)
_CAPSULE_NAME = ctypes.create_string_buffer(b"arrow_array_stream")  # a capsule keeps the pointer, not the text


class Library:
    """The loaded library; one per process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._dll = ctypes.CDLL(str(path))
        except OSError as problem:
            raise StepscopeError(
                f"the library could not be loaded ({problem})",
                "unreadable",
                str(path),
                hint="Build it on this machine with `make build`, or set STEPSCOPE_LIB",
            ) from None
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._dll, name, None)
            if function is None:
                raise self._too_old()
            function.restype, function.argtypes = result, arguments
        if self._dll.stepscope_abi_version() < ABI_VERSION:
            raise self._too_old()
        self._dll.stepscope_capsule_setup(ctypes.cast(ctypes.pythonapi.PyCapsule_GetContext, ctypes.c_void_p))
        self._capsule_free = ctypes.cast(self._dll.stepscope_capsule_free, ctypes.c_void_p)

    def _too_old(self) -> StepscopeError:
        return StepscopeError(
            "the library is older than this package", "unsupported", str(self.path), hint="Run `make build` again"
        )

    def version(self) -> str:
        return str(self._dll.stepscope_version().decode())

    def alive(self) -> int:
        """Arrow arrays, schemas and streams that somebody still holds."""
        return int(self._dll.stepscope_alive())

    def open(self, paths: list[bytes], use_cache: bool, threads: int, tables: dict[str, bytes]) -> int:
        """`tables`: files by the names of their options, such as rules_path."""
        options = Options(struct_size=ctypes.sizeof(Options), use_cache=int(use_cache), threads=threads, **tables)
        error = ctypes.c_void_p()
        run = self._dll.stepscope_open(_list(paths), len(paths), ctypes.byref(options), ctypes.byref(error))
        if not run:
            raise self._taken_error(error)
        return int(run)

    def close(self, run: int) -> None:
        self._dll.stepscope_close(run)

    def answer_names(self) -> str:
        return self._text("stepscope_answer_names")

    def report(self, run: int, names: list[bytes]) -> str:
        return self._text("stepscope_report", run, _list(names), len(names))

    def advise(self, run: int) -> str:
        return self._text("stepscope_advise", run)

    def tables(self, run: int, with_answers: bool) -> str:
        return self._text("stepscope_tables", run, int(with_answers))

    def slice_text(self, run: int, rank: int, number: int) -> str:
        return self._text("stepscope_slice_text", run, rank, number)

    def memory_pages(self, folder: bytes) -> None:
        """Writes the pages of the state of memory beside the memory_state.json of that folder."""
        error = ctypes.c_void_p()
        if self._dll.stepscope_memory_pages(folder, ctypes.byref(error)) != 0:
            raise self._taken_error(error)

    def stream(self, run: int, name: str) -> ctypes._Pointer[ArrowArrayStream]:
        """The table as a stream on the heap; give it to free_stream or capsule."""
        stream = self._dll.stepscope_stream_new()
        error = ctypes.c_void_p()
        if self._dll.stepscope_table(run, name.encode(), stream, ctypes.byref(error)) != 0:
            self.free_stream(stream)
            raise self._taken_error(error)
        return stream  # type: ignore[no-any-return]

    def query(self, run: int, sql: bytes, seconds: float, rows: int) -> tuple[ctypes._Pointer[ArrowArrayStream], bool]:
        """The rows as a stream like that of a table, and whether there were more than `rows`."""
        limits = QueryLimits(ctypes.sizeof(QueryLimits), seconds, rows, 0)
        stream = self._dll.stepscope_stream_new()
        cut, error = ctypes.c_int32(), ctypes.c_void_p()
        if self._dll.stepscope_query(run, sql, ctypes.byref(limits), stream, ctypes.byref(cut), ctypes.byref(error)):
            self.free_stream(stream)
            raise self._taken_error(error)
        return stream, bool(cut.value)

    def free_stream(self, stream: ctypes._Pointer[ArrowArrayStream]) -> None:
        self._dll.stepscope_stream_free(stream)

    def capsule(self, stream: ctypes._Pointer[ArrowArrayStream]) -> object:
        """A PyCapsule "arrow_array_stream" that owns the stream; its destructor is C."""
        capsule: object = _capsule_new(stream, ctypes.addressof(_CAPSULE_NAME), self._capsule_free)
        _capsule_set_context(capsule, stream)  # the destructor asks for the context: the name may have been changed
        return capsule

    def _text(self, function: str, *arguments: object) -> str:
        error = ctypes.c_void_p()
        text = getattr(self._dll, function)(*arguments, ctypes.byref(error))
        if not text:
            raise self._taken_error(error)
        return self._taken_text(text)

    def _taken_text(self, text: int) -> str:
        try:
            return ctypes.string_at(text).decode()
        finally:
            self._dll.stepscope_free_text(text)

    def _taken_error(self, error: ctypes.c_void_p) -> StepscopeError:
        if not error.value:
            return StepscopeError("there is not enough memory", "too_large")
        import json

        parts = json.loads(self._taken_text(error.value))
        return StepscopeError(parts["message"], parts["kind"], parts["file"], parts["offset"], parts["hint"])


class Handle:
    """Owns one run of the library. Whoever calls holds a reference, so that Run.close cannot cut a call short."""

    def __init__(self, value: int) -> None:
        self.value = value
        weakref.finalize(self, library().close, value)


def _list(texts: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*texts)


def candidates() -> list[Path]:
    """Where the library may lie, best first: in a wheel's lib, in a dist folder's, in the build tree."""
    from pathlib import Path

    package = Path(__file__).resolve().parent
    folders = [
        package / "lib",
        package,
        package.parent / "lib",
        package.parent.parent / "lib",
        package.parent.parent / "build",
    ]
    return [folder / FILE_NAME for folder in folders]


def find_library() -> Path:
    chosen = os.environ.get("STEPSCOPE_LIB")
    if chosen:
        from pathlib import Path

        path = Path(chosen)
        return path / FILE_NAME if path.is_dir() else path
    for path in candidates():
        if path.is_file():
            return path
    raise StepscopeError(
        f"{FILE_NAME} was not found",
        "not_found",
        hint="Build it with `make build`, or set STEPSCOPE_LIB to its path; looked in "
        + ", ".join(str(path.parent) for path in candidates()),
    )


_loaded: Library | None = None
_loading = threading.Lock()


def library() -> Library:
    """The library, loaded at the first call."""
    global _loaded
    if _loaded is None:
        with _loading:
            if _loaded is None:
                _loaded = Library(find_library())
    return _loaded
