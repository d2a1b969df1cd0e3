"""A data set in memory: features, target, sensitive columns, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aboveboard.core.errors import InputError
from aboveboard.data.store import combined_sha256

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from aboveboard.core.reference import Reference
    from aboveboard.data.manifest import DatasetInfo, FileInfo, Task

__all__ = ["Dataset", "dataset"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Features, target and sensitive columns of one data set, with provenance, licence and caveats.

    Parameters
    ----------
    name, title : str
    X : pandas.DataFrame of shape (n_rows, n_columns)
        Numbers as numbers, words as categories, missing values as missing. Sensitive columns are included.
    y : pandas.Series of shape (n_rows,), or None
        Categories with meaningful labels, or numbers for a regression; None for rankings, votes and networks.
    sensitive : pandas.DataFrame of shape (n_rows, n_sensitive)
        Columns that describe protected groups; no column where there is none.
    target : str
        Name of `y`; empty without one.
    task : {"binary", "multiclass", "regression", "ranking", "votes", "network"}
    positive : str
        The label that counts as 1; empty unless the task is binary.
    provenance, reference : str, Reference
        Where the rows come from, and the work to cite.
    licence : str
    licence_path : Path or None
        Its text, or the notice that takes its place, where it ships with the package.
    sha256 : str
        Checksum of the file that was read; of several, of the lines ``name checksum``.
    caveats : tuple of str
        What to know before drawing conclusions, one sentence or two each.
    published_rows : int
        Rows that the source publishes.
    synthetic : bool
        Whether the rows were made up; False for every data set here.

    Examples
    --------
    >>> from aboveboard.data import load_german_credit
    >>> load_german_credit()
    Dataset german_credit: Statlog German credit
      1,000 rows x 20 columns; credit_risk is 'bad' (counts as 1) in 30.0 %
      sensitive: personal_status_sex, foreign_worker, age
      licence: CC BY 4.0; 6 caveats, see .caveats
    """

    name: str
    title: str
    X: pd.DataFrame
    y: pd.Series | None
    sensitive: pd.DataFrame
    target: str
    task: Task
    positive: str
    provenance: str
    reference: Reference
    licence: str
    licence_path: Path | None
    sha256: str
    caveats: tuple[str, ...]
    published_rows: int
    synthetic: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """One new data frame: features, sensitive columns that are not among them, target last."""
        frame = self.X.copy()
        for column in self.sensitive.columns.difference(frame.columns, sort=False):
            frame[column] = self.sensitive[column]
        if self.y is not None:
            frame[self.target] = self.y
        return frame

    @property
    def y_binary(self) -> pd.Series:
        """The target as int64: 1 where it is `positive`, else 0.

        Raises
        ------
        aboveboard.core.InputError
            When the task is not binary.
        """
        if self.y is None or self.task != "binary":
            raise InputError(
                f"The data set {self.name} has no two classes: its task is {self.task}",
                expected="a binary data set",
                remedy="Use .y" if self.y is not None else "Use .X",
            )
        return (self.y == self.positive).astype("int64")

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        lines = [f"Dataset {self.name}: {self.title}", f"  {rows:,} rows x {columns:,} columns{self._about_target()}"]
        if len(self.sensitive.columns):
            lines.append(f"  sensitive: {', '.join(map(str, self.sensitive.columns))}")
        lines.append(f"  licence: {self.licence}; {len(self.caveats)} caveats, see .caveats")
        return "\n".join(lines)

    def _about_target(self) -> str:
        if self.y is None:
            return f"; {self.task}, no target"
        if self.task == "binary":
            return f"; {self.target} is {self.positive!r} (counts as 1) in {self.y_binary.mean():.1%}".replace(
                "%", " %"
            )
        if self.task == "multiclass":
            return f"; {self.target} has {self.y.nunique()} classes"
        return f"; {self.target} from {self.y.min():g} to {self.y.max():g}, mean {self.y.mean():.3g}"


def dataset(
    record: DatasetInfo,
    X: pd.DataFrame,
    *,
    target: str | None = None,
    task: Task | None = None,
    positive: str | None = None,
    files: tuple[FileInfo, ...] = (),
    sensitive: pd.DataFrame | None = None,
    title: str = "",
    published_rows: int = 0,
) -> Dataset:
    """Take the target and the sensitive columns out of a table and add what the manifest knows.

    Parameters
    ----------
    record : DatasetInfo
    X : pandas.DataFrame
        Features, and the target where there is one.
    target, task, positive, title, published_rows : optional
        Where they differ from the manifest's.
    files : tuple of FileInfo
        The files that were read; default: all.
    sensitive : pandas.DataFrame, optional
        Default: the columns that the manifest names.
    """
    target = record.target if target is None else target
    y = X[target] if target else None
    X = X.drop(columns=target) if target else X
    return Dataset(
        name=record.name,
        title=title or record.title,
        X=X,
        y=y,
        sensitive=X[list(record.sensitive)].copy() if sensitive is None else sensitive,
        target=target,
        task=task or record.task,
        positive=record.positive if positive is None else positive,
        provenance=record.provenance,
        reference=record.reference,
        licence=record.licence,
        licence_path=record.licence_path,
        sha256=combined_sha256(files or record.files),
        caveats=record.caveats,
        published_rows=published_rows or record.published_rows,
    )
