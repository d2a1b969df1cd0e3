"""The data sets that do not ship with the package: read from ``ABOVEBOARD_DATA`` or the cache, or fetched on request.

Each loader takes ``download=True``; without it nothing is ever fetched.
"""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from aboveboard.core.errors import InputError
from aboveboard.data.dataset import Dataset, dataset
from aboveboard.data.manifest import info
from aboveboard.data.store import obtain

__all__ = ["load_compas", "load_csrankings", "load_fashion_mnist", "load_law_school", "load_nba_coach", "load_remesh"]

COMPAS_COLUMNS = (
    "sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count",
    "days_b_screening_arrest", "c_charge_degree", "decile_score", "score_text", "v_decile_score", "is_recid",
    "is_violent_recid", "two_year_recid",
)  # fmt: skip
CLOTHING = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip

NBA_COACHES = {
    "R": "Doc Rivers", "W": "Monty Williams", "N": "Steve Nash", "D": "Michael Malone", "M": "Nate McMillan",
    "S": "Quin Snyder", "T": "Tom Thibodeau",
}  # fmt: skip
NBA_BALLOTS = (
    "WTS25 TWS16 TSW14 WTM6 STW4 SWT4 TWM4 WST4 TWR3 WTD3 TWN2 WSR2 "
    "WTR2 RTS1 RWT1 SRW1 SWD1 TRM1 TSN1 TSR1 TWD1 WNT1 WSM1 WTN1"
)
"""First, second and third place, and how many of the 100 voters voted so."""


def load_compas(*, download: bool = False) -> Dataset:
    """Load ProPublica's COMPAS data: was a defendant charged again within two years (Florida, 2013 and 2014)?

    Parameters
    ----------
    download : bool
        Whether to fetch it from ProPublica's repository when it is neither in ``ABOVEBOARD_DATA`` nor in the cache.
        Names, birth dates, case numbers and custody dates are dropped before anything is kept.

    Returns
    -------
    Dataset
        7,214 rows, 15 columns; ``y`` is ``"yes"`` or ``"no"``, and ``"yes"`` counts as 1 (45.07 %).

    Raises
    ------
    aboveboard.core.InputError
        When the file is nowhere, cannot be fetched, or has another checksum.

    References
    ----------
    J. Larson, S. Mattu, L. Kirchner, J. Angwin, "How We Analyzed the COMPAS Recidivism Algorithm", ProPublica 2016.
    M. Barenstein, "ProPublica's COMPAS Data Revisited", arXiv:1906.04711.
    """
    record = info("compas")
    (file,) = record.files
    content = obtain(record, prepare=_compas_columns, download=download)[file.name]
    frame = pd.read_csv(io.BytesIO(content), dtype={"days_b_screening_arrest": "Int64"})
    orders = {
        "sex": ["Female", "Male"],
        "age_cat": ["Less than 25", "25 - 45", "Greater than 45"],
        "race": ["African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"],
        "score_text": ["Low", "Medium", "High"],
    }
    for column, words in orders.items():
        frame[column] = pd.Categorical(frame[column], categories=words)
    frame["c_charge_degree"] = pd.Categorical(frame["c_charge_degree"].map({"F": "felony", "M": "misdemeanour"}))
    for column in ("is_recid", "is_violent_recid", "two_year_recid"):
        frame[column] = _named(frame[column], ["no", "yes"])
    return dataset(record, frame)


def load_law_school(*, target: Literal["ZFYA", "PF"] = "ZFYA", download: bool = False) -> Dataset:
    """Load the law school data (LSAC): first-year grades, or a pass/fail outcome, of US law students.

    Parameters
    ----------
    target : {"ZFYA", "PF"}
        First-year average, standardised within the school (a regression), or the pass/fail column, where ``"pass"``
        counts as 1 (88.84 %). The other one is left out, since neither is known when a student applies.
    download : bool
        Whether to fetch it when it is neither in ``ABOVEBOARD_DATA`` nor in the cache.

    Returns
    -------
    Dataset
        21,791 rows: ``LSAT``, ``UGPA``, ``race``, ``sex``.

    Raises
    ------
    aboveboard.core.InputError
        When `target` is neither of the two; when the file is nowhere, cannot be fetched, or has another checksum.

    References
    ----------
    L. F. Wightman, "LSAC National Longitudinal Bar Passage Study", Law School Admission Council, 1998.
    M. J. Kusner, J. Loftus, C. Russell, R. Silva, "Counterfactual Fairness", NeurIPS 2017.
    """
    if target not in ("ZFYA", "PF"):
        raise InputError(f"target is {target!r}", expected="'ZFYA' or 'PF'")
    record = info("law_school")
    (file,) = record.files
    wide = pd.read_csv(io.BytesIO(obtain(record, prepare=_unzipped, download=download)[file.name]))
    spelling = {"Amerindian": "American Indian", "Puertorican": "Puerto Rican"}
    races = [name.removeprefix("Race_") for name in wide.columns if name.startswith("Race_")]
    races = [spelling.get(race, race) for race in races]
    frame = wide[["LSAT", "UGPA"]].copy()
    frame["race"] = _named(wide.filter(like="Race_").to_numpy().argmax(axis=1), races)
    frame["sex"] = _named(wide["Sex_2"].to_numpy(), ["female", "male"])
    if target == "ZFYA":
        frame["ZFYA"] = wide["ZFYA"]
        return dataset(record, frame)
    frame["PF"] = _named(wide["PF_1"].to_numpy(), ["fail", "pass"])
    return dataset(record, frame, target="PF", task="binary", positive="pass")


def load_remesh(prompt: str = "campus_protests.492eac83", *, download: bool = False) -> Dataset:
    """Load one question of Remesh's polarized issues: how far participants agree with each statement.

    Parameters
    ----------
    prompt : str
        One of the 13 names in ``info("remesh").prompts``, which also gives their wording.
    download : bool
        Whether to fetch it (some 40 MB) when it is neither in ``ABOVEBOARD_DATA`` nor in the cache.

    Returns
    -------
    Dataset
        ``X`` is participants x statements, float32: a logit of agreement; above 0 means approval. No target.

    Raises
    ------
    aboveboard.core.InputError
        When there is no such prompt; when the file is nowhere, cannot be fetched, or has other content.

    References
    ----------
    A. Konya and others, "Polarized Issues Dataset", github.com/akonya/polarized-issues-data (CC BY 4.0).
    """
    record = info("remesh")
    if prompt not in record.prompts:
        raise InputError(f"There is no prompt named {prompt!r}", expected=f"one of {', '.join(record.prompts)}")
    (file,) = record.files
    content = obtain(record, prepare=_utilities, download=download)[file.name]
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        X = pd.DataFrame(arrays[f"{prompt}.utility"])
    X.index.name, X.columns.name = "participant", "statement"
    return dataset(record, X, title=f"{record.title}: {record.prompts[prompt]}", published_rows=len(X))


def load_csrankings(*, download: bool = False) -> Dataset:
    """Load the ranks of 175 US computer science departments in five areas of artificial intelligence.

    Parameters
    ----------
    download : bool
        Whether to fetch it when it is neither in ``ABOVEBOARD_DATA`` nor in the cache.

    Returns
    -------
    Dataset
        ``X`` is departments x areas, int64: 1 is best, ties share a rank. No target.

    Raises
    ------
    aboveboard.core.InputError
        When the file is nowhere, cannot be fetched, or has another checksum.

    References
    ----------
    E. D. Berger, "CSRankings: Computer Science Rankings", csrankings.org.
    """
    return _ranking("csrankings", "department", "area", download)


def load_nba_coach(*, names: bool = True, download: bool = False) -> Dataset:
    """Load the ballots for the NBA coach of the year 2021: 100 voters, seven coaches.

    Parameters
    ----------
    names : bool
        Whether the voters bear their names. Without them the ballots need no file: how many voted how is part of the
        package.
    download : bool
        Whether to fetch it when it is neither in ``ABOVEBOARD_DATA`` nor in the cache.

    Returns
    -------
    Dataset
        ``X`` is coaches x voters, int64: ranks 1 to 3, and 4 for every coach that the voter did not name. No target.

    Raises
    ------
    aboveboard.core.InputError
        When the file is nowhere, cannot be fetched, or has another checksum.
    """
    return _ranking("nba_coach", "coach", "voter", download) if names else _ballots()


def load_fashion_mnist(*, split: Literal["all", "train", "test"] = "all", download: bool = False) -> Dataset:
    """Load Fashion-MNIST: grey images of 28 x 28 pixels, ten kinds of clothing.

    Parameters
    ----------
    split : {"all", "train", "test"}
        The published split: 60,000 training images, then 10,000 test images.
    download : bool
        Whether to fetch it (31 MB) when it is neither in ``ABOVEBOARD_DATA``, nor in the cache, nor installed by
        Debian's package dataset-fashion-mnist.

    Returns
    -------
    Dataset
        ``X`` is images x 784 pixels in row order, uint8: 0 is background, 255 is brightest. ``y`` names the clothing;
        each of the ten kinds has 6,000 training and 1,000 test images.

    Raises
    ------
    aboveboard.core.InputError
        When `split` is none of the three; when the files are nowhere, cannot be fetched, or have other content.

    References
    ----------
    H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
    Algorithms", arXiv:1708.07747.
    """
    prefixes = {"all": ("train", "t10k"), "train": ("train",), "test": ("t10k",)}
    if split not in prefixes:
        raise InputError(f"split is {split!r}", expected=f"one of {', '.join(map(repr, prefixes))}")
    record = info("fashion_mnist")
    files = tuple(file for prefix in prefixes[split] for file in record.files if file.name.startswith(prefix))
    contents = obtain(record, files=files, download=download)
    images = np.concatenate([_idx(contents[file.name], header=16) for file in files if "images" in file.name])
    labels = np.concatenate([_idx(contents[file.name], header=8) for file in files if "labels" in file.name])
    X = pd.DataFrame(images.reshape(len(labels), -1), columns=[f"pixel{i}" for i in range(28 * 28)])
    X["label"] = _named(labels, CLOTHING)
    return dataset(record, X, files=files, published_rows=len(labels))


def _ranking(name: str, items: str, judges: str, download: bool) -> Dataset:
    record = info(name)
    (file,) = record.files
    X = pd.read_csv(io.BytesIO(obtain(record, download=download)[file.name]), index_col="item_name").astype("int64")
    X.index.name, X.columns.name = items, judges
    return dataset(record, X)


def _ballots() -> Dataset:
    columns: dict[str, list[int]] = {}
    for entry in NBA_BALLOTS.split():
        places, count = entry[:3], int(entry[3:])
        ranks = [places.index(coach) + 1 if coach in places else 4 for coach in NBA_COACHES]
        for _ in range(count):
            columns[f"voter {len(columns) + 1}"] = ranks
    X = pd.DataFrame(columns, index=pd.Index(list(NBA_COACHES.values()), name="coach"), dtype="int64")
    X.columns.name = "voter"
    return dataset(info("nba_coach"), X, files=())


def _compas_columns(originals: Mapping[str, bytes]) -> dict[str, bytes]:
    """Keep the columns that describe no identifiable person; the first one where a name occurs twice."""
    record = info("compas")
    (original,) = record.originals
    (file,) = record.files
    rows = csv.reader(io.StringIO(originals[original.name].decode("utf-8"), newline=""))
    header = next(rows)
    places = [header.index(column) for column in COMPAS_COLUMNS]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COMPAS_COLUMNS)
    writer.writerows([row[place] for place in places] for row in rows)
    return {file.name: out.getvalue().encode("utf-8")}


def _unzipped(originals: Mapping[str, bytes]) -> dict[str, bytes]:
    record = info("law_school")
    (file,) = record.files
    with zipfile.ZipFile(io.BytesIO(originals[record.originals[0].name])) as archive:
        return {file.name: archive.read("law.csv")}


def _utilities(originals: Mapping[str, bytes]) -> dict[str, bytes]:
    """Take the utility matrix out of each question's JSON file."""
    (file,) = info("remesh").files
    arrays = {}
    for name, content in originals.items():
        try:
            matrix = np.array(json.loads(content)["utility_matrix"], dtype="float32")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{name} does not hold a utility matrix ({error})", remedy="The source has changed: please report it"
            ) from error
        arrays[f"{name.removesuffix('.json')}.utility"] = matrix
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
    return {file.name: out.getvalue()}


def _idx(content: bytes, *, header: int) -> np.ndarray:
    return np.frombuffer(gzip.decompress(content), dtype=np.uint8, offset=header)


def _named(codes: pd.Series | np.ndarray, words: Sequence[str]) -> "pd.Categorical[str]":
    """Turn 0, 1, 2, ... into words."""
    return pd.Categorical.from_codes(np.asarray(codes, dtype=np.int64), pd.Index(words))
