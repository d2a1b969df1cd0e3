"""The data sets that ship with the package: nothing is fetched, nothing leaves the machine."""

import io
import tomllib
from typing import Literal

import pandas as pd
import pyarrow.parquet as pq

from aboveboard.core.errors import InputError
from aboveboard.data.dataset import Dataset, dataset
from aboveboard.data.manifest import PACKAGE, DatasetInfo, FileInfo, info
from aboveboard.data.store import obtain

__all__ = [
    "load_acs_employment",
    "load_adult",
    "load_communities_crime",
    "load_credit_default",
    "load_german_credit",
    "load_karate",
    "load_les_miserables",
]

ADULT_TRAIN_ROWS = 32_561
ACS_ROWS = {2015: 68_785, 2018: 70_131}
BLACK_POPULATION_SPLIT = 0.06


def load_adult(*, split: Literal["all", "train", "test"] = "all") -> Dataset:
    """Load UCI Adult: does a person earn more than 50,000 dollars a year (US survey of 1994)?

    Parameters
    ----------
    split : {"all", "train", "test"}
        The published split: 32,561 training rows, then 16,281 test rows.

    Returns
    -------
    Dataset
        14 columns; ``y`` is ``"<=50K"`` or ``">50K"``, and ``">50K"`` counts as 1 (23.93 % of all rows). Values that
        the source writes as ``?`` are missing. Reading takes some tens of milliseconds.

    Raises
    ------
    aboveboard.core.InputError
        When `split` is none of the three, or the bundled file is damaged.

    References
    ----------
    R. Kohavi, "Scaling Up the Accuracy of Naive-Bayes Classifiers: a Decision-Tree Hybrid", KDD 1996.

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> adult = load_adult()
    >>> adult
    Dataset adult: UCI Adult (census income)
      48,842 rows x 14 columns; income is '>50K' (counts as 1) in 23.9 %
      sensitive: sex, race, age
      licence: CC BY 4.0; 7 caveats, see .caveats
    >>> adult.y_binary.groupby(adult.X["sex"], observed=True).mean().round(3).to_dict()
    {'Female': 0.109, 'Male': 0.304}
    """
    parts = {
        "all": slice(None),
        "train": slice(None, ADULT_TRAIN_ROWS),
        "test": slice(ADULT_TRAIN_ROWS, None),
    }
    if split not in parts:
        raise InputError(f"split is {split!r}", expected=f"one of {', '.join(map(repr, parts))}")
    record = info("adult")
    frame = _read(record, record.files[0]).iloc[parts[split]].reset_index(drop=True)
    return dataset(record, frame)


def load_german_credit(*, labels: Literal["corrected", "published"] = "corrected") -> Dataset:
    """Load Statlog German credit: is a loan a bad risk (southern Germany, 1973 to 1975)?

    Parameters
    ----------
    labels : {"corrected", "published"}
        Which words stand for the codes. The published code table is wrong for most of them; the corrected one is
        Groemping's (2019). The rows are the same.

    Returns
    -------
    Dataset
        1,000 rows, 20 columns; ``y`` is ``"good"`` or ``"bad"``, and ``"bad"`` counts as 1 (30 %).

    Raises
    ------
    aboveboard.core.InputError
        When `labels` is neither of the two, or the bundled file is damaged.

    References
    ----------
    U. Groemping, "South German Credit Data: Correcting a Widely Used Data Set", Reports in Mathematics, Physics and
    Chemistry 4/2019, Beuth University of Applied Sciences Berlin.

    Examples
    --------
    >>> from aboveboard.data import load_german_credit
    >>> load_german_credit().X["foreign_worker"].value_counts().to_dict()
    {'no': 963, 'yes': 37}
    >>> load_german_credit(labels="published").X["foreign_worker"].value_counts().to_dict()
    {'yes': 963, 'no': 37}
    """
    tables = tomllib.loads((PACKAGE / "german_credit_codes.toml").read_text(encoding="utf-8"))
    if labels not in tables:
        raise InputError(f"labels is {labels!r}", expected="'corrected' or 'published'")
    record = info("german_credit")
    frame = _read(record, record.files[0])
    for column, words in tables[labels].items():
        frame[column] = frame[column].cat.rename_categories(words)
    return dataset(record, frame)


def load_credit_default() -> Dataset:
    """Load UCI default of credit card clients: does a client fail to pay next month (Taiwan, 2005)?

    Returns
    -------
    Dataset
        30,000 rows, 23 columns; ``y`` is ``"yes"`` or ``"no"``, and ``"yes"`` counts as 1 (22.12 %). Amounts are in
        New Taiwan dollars.

    Raises
    ------
    aboveboard.core.InputError
        When the bundled file is damaged.

    References
    ----------
    I.-C. Yeh, C.-h. Lien, "The comparisons of data mining techniques for the predictive accuracy of probability of
    default of credit card clients", Expert Systems with Applications 36(2), 2009.

    Examples
    --------
    >>> from aboveboard.data import load_credit_default
    >>> credit = load_credit_default()
    >>> credit.y_binary.groupby(credit.X["sex"], observed=True).mean().round(3).to_dict()
    {'male': 0.242, 'female': 0.208}
    """
    record = info("credit_default")
    return dataset(record, _read(record, record.files[0]))


def load_communities_crime() -> Dataset:
    """Load UCI communities and crime: violent crimes per head in US communities (1990 and 1995).

    Returns
    -------
    Dataset
        1,994 rows, 100 columns, all numbers scaled to 0 to 1 by the publisher, and the state. ``y`` is
        ``ViolentCrimesPerPop``, on the same scale. ``sensitive`` adds ``black_population``: whether ``racepctblack`` is
        above 0.06 (a scaled value, not 6 %), the split that work on fair regression uses.

    Raises
    ------
    aboveboard.core.InputError
        When the bundled file is damaged.

    References
    ----------
    M. Redmond, A. Baveja, "A data-driven software tool for enabling cooperative information sharing among police
    departments", European Journal of Operational Research 141(3), 2002.

    Examples
    --------
    >>> from aboveboard.data import load_communities_crime
    >>> crime = load_communities_crime()
    >>> crime.y.groupby(crime.sensitive["black_population"], observed=True).mean().round(2).to_dict()
    {'up to 0.06': 0.13, 'above 0.06': 0.35}
    """
    record = info("communities_crime")
    frame = _read(record, record.files[0])
    above = frame["racepctblack"] > BLACK_POPULATION_SPLIT
    sensitive = frame[[name for name in record.sensitive if name in frame]].copy()
    sensitive["black_population"] = pd.Categorical(
        above.map({False: "up to 0.06", True: "above 0.06"}), ["up to 0.06", "above 0.06"]
    )
    return dataset(record, frame, sensitive=sensitive)


def load_acs_employment(*, year: Literal[2015, 2018] = 2018) -> Dataset:
    """Load ACS employment, Massachusetts: is a person employed (American Community Survey)?

    Parameters
    ----------
    year : {2015, 2018}
        Survey year. The two years together show drift.

    Returns
    -------
    Dataset
        20,000 rows drawn at random without replacement from the 68,785 (2015) or 70,131 (2018) persons of the source;
        16 columns with plain names and words for codes. ``y`` is ``"yes"`` or ``"no"``, and ``"yes"`` counts as 1.

    Raises
    ------
    aboveboard.core.InputError
        When `year` is neither of the two, or the bundled file is damaged.

    References
    ----------
    F. Ding, M. Hardt, J. Miller, L. Schmidt, "Retiring Adult: New Datasets for Fair Machine Learning", NeurIPS 2021.

    Examples
    --------
    >>> from aboveboard.data import load_acs_employment
    >>> load_acs_employment(year=2015)
    Dataset acs_employment: ACS employment, Massachusetts, 2015
      20,000 rows x 16 columns; employed is 'yes' (counts as 1) in 49.9 %
      sensitive: sex, race, age, disability, nativity
      licence: US public domain; 6 caveats, see .caveats
    """
    if year not in ACS_ROWS:
        raise InputError(f"year is {year!r}", expected=" or ".join(map(str, ACS_ROWS)))
    record = info("acs_employment")
    file = next(file for file in record.files if str(year) in file.name)
    frame = _read(record, file)
    return dataset(record, frame, files=(file,), title=f"{record.title}, {year}", published_rows=ACS_ROWS[year])


def load_karate() -> Dataset:
    """Load Zachary's karate club: who met whom outside the club, before it split.

    Returns
    -------
    Dataset
        ``X`` has 78 rows, one per tie: ``source`` and ``target``, the members 0 to 33; ``weight``, in how many of eight
        places they met; ``source_faction`` and ``target_faction``, ``"Mr. Hi"`` or ``"Officer"``. No target.

    Raises
    ------
    aboveboard.core.InputError
        When the bundled file is damaged.

    References
    ----------
    W. W. Zachary, "An Information Flow Model for Conflict and Fission in Small Groups", Journal of Anthropological
    Research 33(4), 1977.

    Examples
    --------
    >>> from aboveboard.data import load_karate
    >>> ties = load_karate().X
    >>> float((ties["source_faction"] == ties["target_faction"]).mean().round(3))
    0.859
    """
    record = info("karate")
    return dataset(record, _read(record, record.files[0]))


def load_les_miserables() -> Dataset:
    """Load the characters of Les Miserables: who appears with whom, in how many chapters.

    Returns
    -------
    Dataset
        ``X`` has 254 rows, one per pair: ``source`` and ``target``, names of 77 characters; ``weight``, the number of
        chapters. No target.

    Raises
    ------
    aboveboard.core.InputError
        When the bundled file is damaged.

    References
    ----------
    D. E. Knuth, "The Stanford GraphBase: A Platform for Combinatorial Computing", ACM Press, 1993.

    Examples
    --------
    >>> from aboveboard.data import load_les_miserables
    >>> pairs = load_les_miserables().X
    >>> pairs.sort_values("weight").iloc[-1][["source", "target"]].tolist(), int(pairs["weight"].max())
    (['Cosette', 'Valjean'], 31)
    """
    record = info("les_miserables")
    return dataset(record, _read(record, record.files[0]))


def _read(record: DatasetInfo, file: FileInfo) -> pd.DataFrame:
    content = obtain(record, files=(file,))[file.name]
    frame: pd.DataFrame = pq.read_table(io.BytesIO(content)).to_pandas()
    return frame
