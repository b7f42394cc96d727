"""Make 20 task sets from data frames that come with R packages.

`python -m benchmarks.r_sets DIR` writes DIR/<name>.npz with X (floats), y (±1) and task (from 0);
then `python -m benchmarks.transfer --r-sets DIR` measures on them, too.

Needs R and these packages, here by their Debian names:

    apt-get install --no-install-recommends r-base-core r-cran-aer r-cran-cardata r-cran-lme4 \
        r-cran-mass r-cran-mlbench r-cran-mlmrev r-cran-modeldata r-cran-palmerpenguins r-cran-vcd

Rows, features, labels, rows to train on and halves were all set down before any method was run.
The sets come as ten pairs, each of one kind: very many small tasks; many small tasks; rare labels;
regions of a country; near chance; uneven shares; each class from the rest; other labels in every
task; few and easy tasks; rows of one person. Of each pair, by title in alphabetical order, the
first is to decide on and the second to confirm with in odd pairs, the other way round in even ones.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

__all__ = ["CONFIRMING", "DECIDING", "make"]

# Title -> (name of the npz file, rows of each task to train on).
DECIDING: dict[str, tuple[str, int]] = {
    "immunisation by community (10)": ("immunisation", 10),
    "headaches by patient (12)": ("headaches", 12),
    "arrests by year and colour (20)": ("arrests", 20),
    "Gymnasium by German state (20)": ("gymnasium", 20),
    "football by home team (30)": ("football", 30),
    "melanoma deaths by country (10)": ("melanoma", 10),
    "glass, each type from the rest (30)": ("glass", 30),
    "votes on eight bills (15)": ("votes", 15),
    "crabs by species (10)": ("crabs", 10),
    "vowels by speaker (12)": ("vowels", 12),
}
CONFIRMING: dict[str, tuple[str, int]] = {
    "verbal aggression by person (10)": ("aggression", 10),
    "Dutch pupils by school (10)": ("pupils", 10),
    "police searches by neighbourhood (30)": ("searches", 30),
    "abortion by province (20)": ("abortion", 20),
    "lectures by department (30)": ("lectures", 30),
    "house prices by neighbourhood (15)": ("houses", 15),
    "satellite, each soil from the rest (15)": ("satellite", 15),
    "eight pairs of letters (15)": ("letters", 15),
    "penguins by species (12)": ("penguins", 12),
    "asylum by judge (15)": ("judges", 15),
}

TEST_ROWS = 10  # every task keeps at least so many to test on
MOST_TASKS = 140
MOST_ROWS = 20_000
PAIRS = ["CE", "GY", "MN", "AG", "IJ", "AO", "FT", "HN"]  # letters alike
FRONT = ["hid", "hId", "hEd", "hAd"]  # vowels said with the tongue forward

# R package -> the data frames taken from it.
FRAMES = {
    "AER": ["GSOEP9402"],
    "MASS": ["crabs"],
    "carData": ["Arrests", "CES11", "Greene", "KosteckiDillon", "MplsStops"],
    "lme4": ["InstEval", "VerbAgg"],
    "mlbench": ["Glass", "HouseVotes84", "LetterRecognition", "Satellite", "Vowel"],
    "mlmRev": ["Mmmec", "bdf", "guImmun"],
    "modeldata": ["ames"],
    "palmerpenguins": ["penguins"],
    "vcd": ["Bundesliga"],
}

EXPORT = """
words <- commandArgs(trailingOnly = TRUE)
asked <- do.call(rbind, strsplit(words[-1], "::"))
there <- sapply(unique(asked[, 1]), function(p) nzchar(system.file(package = p)))
if (!all(there)) stop("missing: ", paste(names(there)[!there], collapse = " "))
for (k in seq_len(nrow(asked))) {
  held <- new.env()
  data(list = asked[k, 2], package = asked[k, 1], envir = held)
  file <- file.path(words[1], paste0(asked[k, 2], ".csv"))
  write.csv(as.data.frame(held[[asked[k, 2]]]), file, row.names = FALSE)
}
"""


class Set(NamedTuple):
    """Features, label and group of the same rows; what is missing is still NaN."""

    X: pd.DataFrame
    label: pd.Series
    group: pd.Series


Frames = dict[str, pd.DataFrame]


def read_frames() -> Frames:
    """Have R write its data frames, and read them."""
    if shutil.which("Rscript") is None:
        sys.exit("needs Rscript: apt-get install r-base-core (see this file's docstring).")
    asked = [f"{package}::{name}" for package, names in FRAMES.items() for name in names]
    with tempfile.TemporaryDirectory() as folder:
        command = ["Rscript", "-e", EXPORT, folder, *asked]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "missing: " in done.stderr:
            packages = done.stderr.split("missing: ")[1].split("\n")[0].lower().split()
            sys.exit("needs Debian's " + ", ".join(f"r-cran-{name}" for name in packages))
        if done.returncode:
            sys.exit(f"R could not write its data frames:\n{done.stderr}")
        return {
            path.stem: pd.read_csv(path, keep_default_na=False, na_values="NA", low_memory=False)
            for path in Path(folder).glob("*.csv")
        }


def features(frame: pd.DataFrame, numbers: list[str], kinds: list[str]) -> pd.DataFrame:
    """Columns of numbers, and of kinds: 0 and 1, one column where there are two kinds."""
    columns = [frame[numbers].astype(float)]
    for name in kinds:
        coded = pd.get_dummies(frame[name], prefix=name, dtype=float)
        coded = coded.iloc[:, 1:] if coded.shape[1] == 2 else coded
        columns.append(coded.where(frame[name].notna(), axis=0))
    return pd.concat(columns, axis=1)


def from_rest(X: pd.DataFrame, kind: pd.Series) -> Set:
    """Return a task for each kind, from the rest, all on the same rows."""
    names = sorted(kind.unique())
    label = pd.concat([kind == name for name in names], ignore_index=True)
    group = pd.Series(np.repeat(names, len(X)))
    return Set(pd.concat([X] * len(names), ignore_index=True), label, group)


def immunisation(frames: Frames) -> Set:
    """Children in Guatemala, by community: fully immunised."""
    frame = frames["guImmun"].assign(ord=lambda f: f["ord"].astype(str))
    kinds = ["kid2p", "mom25p", "ord", "ethn", "momEd", "husEd", "momWork", "rural"]
    return Set(features(frame, ["pcInd81"], kinds), frame["immun"] == "Y", frame["comm"])


def aggression(frames: Frames) -> Set:
    """Questions on verbal aggression, by the person asked: would curse, scold or shout."""
    frame = frames["VerbAgg"]
    return Set(features(frame, [], ["btype", "situ", "mode"]), frame["r2"] == "Y", frame["id"])


def headaches(frames: Frames) -> Set:
    """Days, by patient under treatment for migraine: a headache."""
    frame = frames["KosteckiDillon"]
    X = features(frame, ["time", "dos", "airq", "age"], ["hatype", "medication", "sex"])
    return Set(X, frame["headache"] == "yes", frame["id"])


def pupils(frames: Frames) -> Set:
    """Dutch pupils, by school: among the lowest quarter in language two years later."""
    frame = frames["bdf"]
    numbers = ["IQ.verb", "IQ.perf", "repeatgr", "aritPRET", "langPRET", "ses", "groupsiz"]
    label = frame["langPOST"] <= frame["langPOST"].quantile(0.25)
    return Set(features(frame, numbers, ["sex", "Minority"]), label, frame["schoolNR"])


def arrests(frames: Frames) -> Set:
    """Arrests for a little marijuana in Toronto, by year and colour: kept in custody."""
    frame = frames["Arrests"]
    X = features(frame, ["age", "checks"], ["sex", "employed", "citizen"])
    return Set(X, frame["released"] == "No", frame["year"].astype(str) + frame["colour"])


def searches(frames: Frames) -> Set:
    """Stops by the police of Minneapolis, by neighbourhood: the person was searched."""
    frame = frames["MplsStops"].dropna(subset="personSearch")
    angle = pd.to_datetime(frame["date"], format="mixed").dt.hour * np.pi / 12
    frame = frame.assign(sine=np.sin(angle), cosine=np.cos(angle))
    X = features(frame, ["lat", "long", "sine", "cosine"], ["problem", "race", "gender"])
    return Set(X, frame["personSearch"] == "YES", frame["neighborhood"])


def abortion(frames: Frames) -> Set:
    """Canadians asked in 2011, by province: abortion should be banned."""
    frame = frames["CES11"]
    X = features(frame, [], ["gender", "importance", "education", "urban"])
    return Set(X, frame["abortion"] == "Yes", frame["province"])


def gymnasium(frames: Frames) -> Set:
    """German children of 14, by state: go to a Gymnasium."""
    frame = frames["GSOEP9402"].assign(income=lambda f: np.log(f["income"]))
    numbers = ["birthyear", "kids", "parity", "income", "size", "meducation", "year"]
    X = features(frame, numbers, ["gender", "marital", "memployment"])
    return Set(X, frame["school"] == "Gymnasium", frame["state"])


def football(frames: Frames) -> Set:
    """Matches of the Bundesliga, by home team: a win for it."""
    frame = frames["Bundesliga"]
    X = features(frame, ["Year"], ["AwayTeam"])
    return Set(X, frame["HomeGoals"] > frame["AwayGoals"], frame["HomeTeam"])


def lectures(frames: Frames) -> Set:
    """Marks students in Zurich gave to lectures, by department: 4 or 5 of 5."""
    frame = frames["InstEval"]
    X = features(frame, ["studage"], ["lectage", "service"])
    return Set(X, frame["y"] >= 4, frame["dept"])


def houses(frames: Frames) -> Set:
    """Houses sold in Ames, by neighbourhood: dearer than the town's median."""
    frame = frames["ames"]
    price, area = frame["Sale_Price"], frame["Neighborhood"]
    X = frame.select_dtypes("number").drop(columns=["Sale_Price", "Longitude", "Latitude"])
    return Set(X, price > price.median(), area)


def melanoma(frames: Frames) -> Set:
    """Counties, by European country: more deaths of melanoma than expected."""
    frame = frames["Mmmec"].assign(size=lambda f: np.log(f["expected"]))
    label = frame["deaths"] > frame["expected"]
    return Set(features(frame, ["uvb", "size"], []), label, frame["nation"])


def glass(frames: Frames) -> Set:
    """Splinters of glass, for each of six types: of that type."""
    return from_rest(frames["Glass"].drop(columns="Type"), frames["Glass"]["Type"])


def satellite(frames: Frames) -> Set:
    """Spots seen by a satellite, for each of six soils: of that soil."""
    frame = frames["Satellite"]
    return from_rest(frame.drop(columns="classes"), frame["classes"])


def letters(frames: Frames) -> Set:
    """Printed letters, by pair of letters alike: the first of the two."""
    frame = frames["LetterRecognition"]
    pairs = [frame[frame["lettr"].isin(list(pair))] for pair in PAIRS]
    group = pd.Series(np.repeat(PAIRS, [len(pair) for pair in pairs]))
    rows = pd.concat(pairs, ignore_index=True)
    return Set(rows.drop(columns="lettr"), rows["lettr"] == group.str[0], group)


def votes(frames: Frames) -> Set:
    """Members of Congress in 1984, by bill (the last eight): voted for it; from the first eight."""
    frame = frames["HouseVotes84"]
    X = frame[[f"V{k}" for k in range(1, 9)]].apply(lambda vote: vote.map({"y": 1.0, "n": -1.0}))
    cast = frame[[f"V{k}" for k in range(9, 17)]].melt(var_name="bill", value_name="vote")
    known = cast["vote"].notna()
    rows = pd.concat([X.fillna(0.0)] * 8, ignore_index=True)
    return Set(rows[known], cast["vote"][known] == "y", cast["bill"][known])


def crabs(frames: Frames) -> Set:
    """Crabs, by species: males."""
    frame = frames["crabs"]
    return Set(frame[["FL", "RW", "CL", "CW", "BD"]], frame["sex"] == "M", frame["sp"])


def penguins(frames: Frames) -> Set:
    """Penguins, by species: males."""
    frame = frames["penguins"].dropna(subset="sex")
    sizes = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    return Set(features(frame, sizes, []), frame["sex"] == "male", frame["species"])


def judges(frames: Frames) -> Set:
    """Refused claims of asylum in Canada, by judge: given leave to appeal."""
    frame = frames["Greene"]
    X = features(frame, ["success"], ["nation", "rater", "language", "location"])
    return Set(X, frame["decision"] == "yes", frame["judge"])


def vowels(frames: Frames) -> Set:
    """Vowels said, by speaker: a front vowel."""
    frame = frames["Vowel"]
    return Set(frame[[f"V{k}" for k in range(2, 11)]], frame["Class"].isin(FRONT), frame["V1"])


MAKERS: dict[str, Callable[[Frames], Set]] = {
    maker.__name__: maker
    for maker in (
        immunisation, headaches, arrests, gymnasium, football, melanoma, glass, votes, crabs,
        vowels, aggression, pupils, searches, abortion, lectures, houses, satellite, letters,
        penguins, judges,
    )
}  # fmt: skip


def kept(group: pd.Series, at_least: int) -> np.ndarray:
    """Return the places of rows to keep: tasks neither too small nor too many, nor their rows."""
    rng = np.random.default_rng(0)
    counts = group.value_counts().sort_index()
    names = counts.index[counts >= at_least].to_numpy()
    names = np.sort(rng.permutation(names)[:MOST_TASKS])
    most = MOST_ROWS // len(names)
    rows = [rng.permutation(np.flatnonzero(group == name))[:most] for name in names]
    return np.sort(np.concatenate(rows))


def arrays(made: Set, n_train: int) -> dict[str, np.ndarray]:
    """Turn a set into arrays, without rows that lack something and columns that never change."""
    X, label, group = (part.reset_index(drop=True) for part in made)
    full = np.flatnonzero(X.notna().all(axis=1) & group.notna())
    rows = full[kept(group.iloc[full], n_train + TEST_ROWS)]
    values = X.to_numpy(dtype=float)[rows]
    task = np.unique(group.to_numpy()[rows], return_inverse=True)[1]
    y = np.where(label.to_numpy()[rows], 1.0, -1.0)
    return {"X": values[:, np.ptp(values, axis=0) > 0], "y": y, "task": task}


def make(folder: Path) -> None:
    """Write every set into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = read_frames()
    for name, n_train in {**DECIDING, **CONFIRMING}.values():
        np.savez_compressed(folder / f"{name}.npz", **arrays(MAKERS[name](frames), n_train))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    make(Path(sys.argv[1]))
