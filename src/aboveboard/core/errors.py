"""The errors that aboveboard raises on purpose; anything else that escapes is a bug."""

__all__ = ["InputError", "MissingExtra", "ModelError", "QueriesSpent"]


class InputError(ValueError):
    """The data, the options or a file cannot be used as given.

    Parameters
    ----------
    got : str
        What was found, in plain words.
    expected : str, optional
        What would have been accepted.
    remedy : str, optional
        What the user can do next.
    """

    def __init__(self, got: str, *, expected: str = "", remedy: str = "") -> None:
        self.got = got
        self.expected = expected
        self.remedy = remedy
        parts = [got.rstrip(".") + "."]
        if expected:
            parts.append(f"Expected {expected.rstrip('.')}.")
        if remedy:
            parts.append(remedy if remedy.endswith("?") else remedy.rstrip(".") + ".")
        super().__init__(" ".join(parts))


class ModelError(RuntimeError):
    """The audited model crashed, hung, ran out of memory or gave a malformed answer.

    Parameters
    ----------
    message : str
    kind : str, optional
        What went wrong, in a word or two that quote no data: ``"ValueError"``, ``"time limit"``. Default: the type of
        the exception that it was raised from.
    """

    def __init__(self, message: str, *, kind: str = "") -> None:
        super().__init__(message)
        self._kind = kind

    @property
    def kind(self) -> str:
        """What went wrong, in a word or two; empty for an answer that came and was malformed."""
        return self._kind or ("" if self.__cause__ is None else type(self.__cause__).__name__)


class QueriesSpent(RuntimeError):
    """The model may not be asked any more; a check that sees this is skipped, and what was found is kept."""


class MissingExtra(ImportError):
    """A package that this feature needs is not installed.

    Parameters
    ----------
    package : str
        The import name that was not found.
    extra : str
        The extra of aboveboard that brings it.
    feature : str
        What needs it.
    """

    def __init__(self, package: str, *, extra: str, feature: str) -> None:
        self.package = package
        self.extra = extra
        self.feature = feature
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'aboveboard[{extra}]'"
        )
