"""Who listens to whom: weights as a sparse matrix, read, checked and added to."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from aboveboard.core.errors import InputError

__all__ = [
    "Direction",
    "Edges",
    "add_influencer",
    "insert_edges",
    "load_edge_list",
    "mutable_edges",
    "network_from_edges",
    "read_opinions",
    "read_weights",
]

Floats = NDArray[np.float64]
Ints = NDArray[Any]
Direction = Literal["listens", "influences", "mutual"]

_DIRECTIONS: Final = ("listens", "influences", "mutual")


@dataclass(frozen=True)
class Edges:
    """The weights that may be changed, as one vector of variables.

    Attributes
    ----------
    n : int
        Accounts.
    positions : tuple of ndarray
        Where each variable stands among the stored weights: once, or twice (i to j, and j to i) for pairs.
    rows, cols : ndarray of shape (m,)
        Who listens, and to whom; of a pair, rows < cols.
    start : ndarray of shape (m,)
        The weights before.
    """

    n: int
    positions: tuple[Ints, ...]
    rows: Ints
    cols: Ints
    start: Floats

    @property
    def paired(self) -> bool:
        return len(self.positions) == 2

    def write(self, W: sparse.csr_array, x: Floats) -> None:
        """Put the variables into the matrix, in place."""
        for places in self.positions:
            W.data[places] = x


def read_weights(W: Any, *, name: str = "W") -> sparse.csr_array:
    """Return a copy of W in rows, float64, each edge once; stored zeros stay stored.

    Raises
    ------
    InputError
        Unless W is square with weights that are finite and none below 0, and has nothing on its diagonal.
    """
    given = W if sparse.issparse(W) else np.asarray(W.to_numpy() if hasattr(W, "to_numpy") else W)
    if len(given.shape) != 2 or given.shape[0] != given.shape[1] or not given.shape[0]:
        raise InputError(
            f"{name} has shape {given.shape}", expected="accounts x accounts: row i holds whom account i listens to"
        )
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name} has type {given.dtype}", expected="numbers")
    matrix = sparse.csr_array(given, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise InputError(f"{name} holds weights that are not finite", expected="finite weights, 0 or more")
    if matrix.nnz and matrix.data.min() < 0:
        raise InputError(
            f"{name} holds the weight {matrix.data.min():g}",
            expected="weights of 0 or more",
            remedy="The model has no distrust: leave such edges out",
        )
    loops = int((_rows(matrix) == matrix.indices).sum())
    if loops:
        raise InputError(
            f"{name} holds {loops:,} {'weight' if loops == 1 else 'weights'} of an account for itself",
            expected="nothing on the diagonal",
            remedy="Leave them out: how much an account keeps to its own opinion is 1 in this model",
        )
    return matrix


def read_opinions(s: Any, n: int, *, name: str = "s") -> Floats:
    """Return opinions as float64.

    Raises
    ------
    InputError
        Unless there is one finite number per account.
    """
    try:
        values = np.asarray(s.to_numpy(dtype="float64", na_value=np.nan) if isinstance(s, pd.Series) else s)
        opinions = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not all numbers", expected="one opinion per account, a number") from error
    if opinions.shape != (n,):
        raise InputError(f"{name} has shape {opinions.shape}", expected=f"one opinion per account: ({n},)")
    if not np.isfinite(opinions).all():
        at = int(np.flatnonzero(~np.isfinite(opinions))[0])
        raise InputError(
            f"the opinion of account {at} is {opinions[at]}",
            expected="finite opinions",
            remedy="Leave accounts out whose opinion is not known, or give them a neutral one and say so",
        )
    return opinions


def network_from_edges(
    source: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    n: int | None = None,
    direction: Direction = "listens",
) -> sparse.csr_array:
    """Make the matrix of weights from a list of edges.

    Parameters
    ----------
    source, target : array-like of int, shape (m,)
        Numbers of accounts, from 0 on.
    weight : array-like of shape (m,), optional
        1 without.
    n : int, optional
        Accounts; one more than the largest number by default.
    direction : {"listens", "influences", "mutual"}
        Whether the source listens to the target (follows, retweets), is heard by it, or both.

    Returns
    -------
    csr_array of shape (n, n)
        Row i holds whom account i listens to. Edges that occur several times are added up.

    Raises
    ------
    aboveboard.core.InputError
        For numbers of accounts that are none, and weights that `FriedkinJohnsen` would refuse.

    Warns
    -----
    UserWarning
        When edges from an account to itself are left out.

    Notes
    -----
    O(m) time and memory.

    Examples
    --------
    >>> from aboveboard.collective import network_from_edges
    >>> network_from_edges([0, 0, 2], [1, 2, 1]).toarray().tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if direction not in _DIRECTIONS:
        raise InputError(f"direction is {direction!r}", expected=", ".join(_DIRECTIONS))
    i, j = _accounts(source, "source"), _accounts(target, "target")
    values = np.ones(len(i)) if weight is None else np.asarray(weight)
    if not len(i) == len(j) == len(values):
        raise InputError(
            f"there are {len(i):,} sources, {len(j):,} targets and {len(values):,} weights", expected="as many of each"
        )
    size = n if n is not None else 1 + max(int(i.max(initial=-1)), int(j.max(initial=-1)))
    own = i == j
    if own.any():
        warnings.warn(f"{int(own.sum()):,} edges from an account to itself were left out", stacklevel=2)
        i, j, values = i[~own], j[~own], values[~own]
    if direction == "influences":
        i, j = j, i
    if direction == "mutual":
        i, j, values = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([values, values])
    if len(i) and max(int(i.max()), int(j.max())) >= size:
        raise InputError(f"an account has the number {max(int(i.max()), int(j.max()))}", expected=f"below n = {size}")
    return read_weights(sparse.coo_array((values, (i, j)), shape=(size, size)), name="the network")


def load_edge_list(path: str | Path, *, direction: Direction = "listens") -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Read an edge list as SNAP publishes them: two whole numbers per line, a weight after them if there is one.

    Parameters
    ----------
    path : path
        Text, also packed by gzip. Lines that begin with # are skipped; any white space separates.
    direction : {"listens", "influences", "mutual"}
        See `network_from_edges`.

    Returns
    -------
    W : csr_array of shape (n, n)
    accounts : ndarray of int64, shape (n,)
        The number that each account has in the file, ascending.

    Raises
    ------
    aboveboard.core.InputError
        When the file is not there, or holds anything else.

    Notes
    -----
    O(m) time; about 60 bytes of memory per edge while it is read.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file.name!r}", expected="an edge list")
    try:
        table = pd.read_csv(file, sep=r"\s+", comment="#", header=None)
    except (ValueError, OSError) as error:  # pandas' own errors among them
        raise InputError(
            f"{file.name!r} cannot be read: {error}", expected="two numbers per line, or three with a weight"
        ) from error
    kinds = [column.dtype.kind for _, column in table.items()]
    if len(kinds) not in (2, 3) or kinds[:2] != ["i", "i"] or kinds[-1] not in "if":
        raise InputError(
            f"{file.name!r} has {len(kinds)} columns, of types {', '.join(str(t) for t in table.dtypes)}",
            expected="two whole numbers per line, or three numbers with a weight",
        )
    m = len(table)
    codes, accounts = pd.factorize(np.concatenate([table[0].to_numpy(), table[1].to_numpy()]), sort=True)
    weight = table[2].to_numpy(dtype=np.float64) if len(kinds) == 3 else None
    return network_from_edges(codes[:m], codes[m:], weight, n=len(accounts), direction=direction), accounts


def insert_edges(W: Any, rows: ArrayLike, cols: ArrayLike, weight: float = 0.0) -> sparse.csr_array:
    """Store edges that the network does not have, so that an intervention may change them.

    Parameters
    ----------
    W : sparse matrix or array of shape (n, n)
    rows, cols : array-like of int, shape (m,)
        Who would listen, and to whom. Edges that are there keep their weight.
    weight : float
        Of the new edges; 0 leaves all opinions as they are.

    Returns
    -------
    csr_array of shape (n, n)

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import insert_edges
    >>> insert_edges(np.array([[0.0, 1.0], [0.0, 0.0]]), [1], [0]).nnz
    2
    """
    matrix = read_weights(W)
    n = matrix.shape[0]
    i, j = _accounts(rows, "rows"), _accounts(cols, "cols")
    _check_ends(i, j, n)
    new = find_edges(matrix, i, j) < 0
    pairs = np.unique(np.stack([i[new], j[new]]), axis=1)
    parts = matrix.tocoo()
    values = np.concatenate([parts.data, np.full(pairs.shape[1], float(weight))])
    places = (np.concatenate([parts.row, pairs[0]]), np.concatenate([parts.col, pairs[1]]))
    return read_weights(sparse.coo_array((values, places), shape=(n, n)))


def add_influencer(
    W: Any, s: ArrayLike, opinion: float = 0.0
) -> tuple[sparse.csr_array, Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Add an account that listens to nobody, and that everybody could be made to listen to.

    Parameters
    ----------
    W : sparse matrix or array of shape (n, n)
    s : array-like of shape (n,)
    opinion : float
        What it says.

    Returns
    -------
    W : csr_array of shape (n + 1, n + 1)
        With a stored weight of 0 from every account to the new one, which is the last.
    s : ndarray of shape (n + 1,)
    rows, cols : ndarray of shape (n,)
        The new edges: what `OpinionInterventionOptimizer` takes as `mutable`.

    Notes
    -----
    O(edges + n) time and memory.

    Examples
    --------
    >>> from aboveboard.collective import add_influencer
    >>> W, s, rows, cols = add_influencer([[0, 1], [1, 0]], [-1, 1])
    >>> W.toarray().tolist(), s.tolist(), cols.tolist()
    ([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [-1.0, 1.0, 0.0], [2, 2])
    """
    matrix = read_weights(W)
    n = matrix.shape[0]
    opinions = read_opinions(s, n)
    if not np.isfinite(opinion):
        raise InputError(f"the opinion of the influencer is {opinion!r}", expected="a finite number")
    places = matrix.indptr[1:] + np.arange(n)  # the new account has the largest number: its edge ends each row
    kept = np.ones(matrix.nnz + n, dtype=bool)
    kept[places] = False
    data, indices = np.zeros(len(kept)), np.full(len(kept), n, dtype=matrix.indices.dtype)
    data[kept], indices[kept] = matrix.data, matrix.indices
    indptr = np.concatenate([[0], places + 1, [len(kept)]]).astype(matrix.indptr.dtype)
    larger = sparse.csr_array((data, indices, indptr), shape=(n + 1, n + 1))
    return larger, np.append(opinions, float(opinion)), np.arange(n), np.full(n, n)


def mutable_edges(W: sparse.csr_array, mutable: Any, *, symmetric: bool) -> Edges:
    """Return the variables: all stored edges, or those named by rows and columns, once per pair where symmetric.

    Raises
    ------
    InputError
        For edges that are not stored, or are named twice; where symmetric, for pairs whose weights differ.
    """
    n = W.shape[0]
    if isinstance(mutable, str):
        if mutable != "all":
            raise InputError(f"mutable is {mutable!r}", expected="'all', or the rows and columns of edges")
        places, rows = np.arange(W.nnz), _rows(W)
    else:
        places, rows = _named(W, mutable)
    cols = W.indices[places]
    if not len(places):
        raise InputError("there is no edge to change", expected="one mutable edge at least")
    if not symmetric:
        return Edges(n, (places,), rows, cols, W.data[places].copy())
    first, second = np.minimum(rows, cols), np.maximum(rows, cols)
    pairs = np.unique(np.stack([first, second]), axis=1)
    there, back = find_edges(W, pairs[0], pairs[1]), find_edges(W, pairs[1], pairs[0])
    if min(int(there.min()), int(back.min())) < 0 or not np.array_equal(W.data[there], W.data[back]):
        raise InputError(
            "symmetric is set, and the mutable weights are not the same in both directions",
            expected="w_ij = w_ji for every mutable edge",
            remedy="Leave symmetric out, or make the network mutual",
        )
    return Edges(n, (there, back), pairs[0], pairs[1], W.data[there].copy())


def find_edges(W: sparse.csr_array, rows: Ints, cols: Ints) -> NDArray[np.int64]:
    """Return where each edge is stored, or -1: a bisection in all rows at once."""
    low, end = W.indptr[rows].astype(np.int64), W.indptr[rows + 1].astype(np.int64)
    high = end.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        before = open_ & (W.indices[np.minimum(middle, W.nnz - 1)] < cols)
        low = np.where(before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    found = low < end
    found[found] = W.indices[low[found]] == cols[found]
    return np.where(found, low, -1)


def _named(W: sparse.csr_array, mutable: Any) -> tuple[NDArray[np.int64], Ints]:
    try:
        rows, cols = mutable
    except (TypeError, ValueError) as error:
        raise InputError("mutable is no pair", expected="'all', or the rows and columns of edges") from error
    i, j = _accounts(rows, "the rows of mutable"), _accounts(cols, "the columns of mutable")
    if len(i) != len(j):
        raise InputError(f"mutable has {len(i):,} rows and {len(j):,} columns", expected="as many of each")
    _check_ends(i, j, W.shape[0])
    places = find_edges(W, i, j)
    absent = np.flatnonzero(places < 0)
    if len(absent):
        raise InputError(
            f"{len(absent):,} mutable edges are not in the network, the first from {i[absent[0]]} to {j[absent[0]]}",
            expected="stored edges, with weight 0 where nobody listens yet",
            remedy="Store them first: W = insert_edges(W, rows, cols)",
        )
    order = np.argsort(places, kind="stable")
    if (np.diff(places[order]) == 0).any():
        raise InputError("mutable names an edge twice", expected="each edge once")
    return places[order], i[order]


def _rows(W: sparse.csr_array) -> Ints:
    return np.repeat(np.arange(W.shape[0], dtype=W.indices.dtype), np.diff(W.indptr))


def _accounts(values: ArrayLike, name: str) -> Ints:
    given = np.asarray(values)
    if given.size == 0:
        return np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(
            f"{name}: shape {given.shape}, type {given.dtype}", expected="whole numbers of accounts, one list"
        )
    if int(given.min()) < 0:
        raise InputError(f"{name}: an account has the number {given.min()}", expected="numbers from 0 on")
    return given


def _check_ends(i: Ints, j: Ints, n: int) -> None:
    largest = max(int(i.max(initial=0)), int(j.max(initial=0)))
    if largest >= n:
        raise InputError(f"an edge names account {largest}", expected=f"accounts from 0 to {n - 1}")
