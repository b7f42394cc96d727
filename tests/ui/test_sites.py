"""From three hospitals' raw files to a classifier: the command line against pooled scikit-learn."""

import csv
import gzip
import io
import json
import unicodedata

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from dtsvm.data.sample import SITES, read_site
from dtsvm.svm.model_file import read_model

FILES = ["north.csv", "south.csv", "west.csv"]
TRAIN = ["train", *FILES, "--label", "readmitted", "--features",
         "age,creatinine,dose,smoker,ward,patient_id,admitted,country", "--method", "dsvm",
         "--network", "ring", "--tol", "1e-8", "--max-rounds", "100000"]  # fmt: skip


@pytest.fixture
def sites(run, tmp_path):
    run("demo", "sites", "--out", ".")
    return tmp_path


def pooled_frames():
    """The four files as a careful person would read each with pandas."""
    north = pd.read_csv(io.BytesIO(read_site("north")))
    south = pd.read_csv(io.BytesIO(read_site("south")), sep=";", decimal=",", thousands=".")
    west = pd.read_csv(io.BytesIO(read_site("west")), sep="\t", na_values=".")
    west["smoker"] = west["smoker"].map({1: "yes", 0: "no"})
    new = pd.read_csv(io.BytesIO(read_site("new")))
    return pd.concat([north, south, west], ignore_index=True), new


def pooled_pipeline():
    numbers = ["age (years)", "creatinine (mg/dl)", "dose (mg)"]
    gaps = ("gaps", MissingIndicator(features="missing-only"))
    scaled = FeatureUnion([("value", make_pipeline(SimpleImputer(), StandardScaler())), gaps])
    switch = FeatureUnion([("value", SimpleImputer()), gaps])
    one_hot = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="(missing)"),
        OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist"),
    )
    columns = ColumnTransformer(
        [("number", scaled, numbers), ("switch", switch, ["smoker"]), ("level", one_hot, ["ward"])]
    )
    return make_pipeline(columns, SVC(kernel="linear", C=1.0, tol=1e-10))


def as_numbers(frame):
    return frame.assign(smoker=frame["smoker"].map({"yes": 1.0, "no": 0.0}))


@pytest.fixture
def pooled():
    rows, new = pooled_frames()
    return pooled_pipeline().fit(as_numbers(rows), rows["readmitted"]), as_numbers(new)


def answers(text):
    lines = list(csv.DictReader(io.StringIO(text)))
    return [line["label"] for line in lines], np.array([float(x["decision"]) for x in lines]), lines


def test_three_messy_files_end_where_the_pooled_pipeline_ends(run, sites, pooled):
    pipeline, new = pooled
    run(*TRAIN)
    labels, values, lines = answers(run("predict", "model.json", "new.csv").stdout)
    np.testing.assert_allclose(values, pipeline.decision_function(new), atol=1e-3)
    assert labels == pipeline.predict(new).tolist()
    assert [line["patient_id"] for line in lines] == new["patient_id"].astype(str).tolist()


def test_shuffled_columns_change_nothing_that_matters(run, sites, pooled):
    rng = np.random.default_rng(0)
    for name in FILES:
        delimiter = {"north.csv": ",", "south.csv": ";", "west.csv": "\t"}[name]
        text = (sites / name).read_text(encoding="utf-8-sig")
        table = list(csv.reader(io.StringIO(text), delimiter=delimiter))
        order = rng.permutation(len(table[0]))
        with open(sites / name, "w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([row[j] for j in order] for row in table)
    run(*TRAIN)
    pipeline, new = pooled
    _, values, _ = answers(run("predict", "model.json", "new.csv").stdout)
    np.testing.assert_allclose(values, pipeline.decision_function(new), atol=1e-3)


def test_evaluate_says_what_scikit_learn_says(run, sites, pooled):
    pipeline, new = pooled
    run(*TRAIN)
    found = json.loads(run("evaluate", "model.json", "new.csv", "--json").stdout)
    truth, said = new["readmitted"], pipeline.predict(new)
    assert found["error"] == np.mean(truth != said)
    assert found["guess_error"] == np.mean(truth == "yes")
    assert np.isclose(found["balanced_accuracy"], balanced_accuracy_score(truth, said))
    entry = found["tasks"][0]
    decision = pipeline.decision_function(new)
    assert np.isclose(entry["auc"], roc_auc_score(truth == "yes", decision), atol=1e-3)
    assert np.array_equal(np.trace(entry["confusion"]), (truth == said).sum())


def test_what_is_left_out_is_said(run, sites):
    lines = run(*TRAIN).stdout.splitlines()
    assert lines[:3] == [
        "Column 'patient_id' looks like an identifier and is left out; declare its kind to use it.",
        "Column 'admitted' holds dates or times and is left out; make a number of it to use it.",
        "Column 'country' is 'Freedonia' in every row; it is left out.",
    ]


def test_held_out_rows_play_no_part_in_training_or_preparation(run, sites):
    run("train", *FILES, "--label", "readmitted", "--task", "disease", "--holdout", "0.25")
    plan = read_model("model.json").preparation
    assert plan["n_rows"] == 360 - 89
    text = run("train", *FILES, "--label", "readmitted", "--task", "disease", "--holdout",
               "0.25").stdout  # fmt: skip
    assert "\nOn 89 rows held out:\n" in text
    assert max(map(len, text.splitlines()[3:])) <= 80


def test_weights_are_shown_by_column_and_unit_the_largest_first(run, sites):
    run(*TRAIN)
    found = json.loads(run("inspect", "model.json", "--json").stdout)
    weights = found["tasks"][0]["weights"][0]
    sizes = [abs(entry["weight"]) for entry in weights["features"]]
    assert sizes == sorted(sizes, reverse=True)
    age = next(entry for entry in weights["features"] if entry["feature"] == "age")
    plan = read_model("model.json").preparation
    scale = next(f["scale"] for f in plan["features"] if f["column"] == "age")
    assert (age["unit"], age["per_unit"]) == ("years", age["weight"] / scale)
    lines = run("inspect", "model.json").stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("Column")) <= 80


def test_a_site_without_a_column_is_refused_by_name_or_filled(run, sites):
    table = pd.read_csv("west.csv", sep="\t", dtype=str).drop(columns="creatinine (mg/dl)")
    table.to_csv("west.csv", sep="\t", index=False)
    command = ["train", *FILES, "--label", "readmitted"]
    assert run(*command, exit_code=1).stderr == (
        "Error: Node west has no column 'creatinine'; north has it as a number. Add it, or let it "
        'be filled in with missing_columns = "impute" (--missing-columns impute).\n'
    )
    assert not (sites / "model.json").exists()
    run(*command, "--missing-columns", "impute")
    run("predict", "model.json", "west.csv")


def test_a_column_that_training_left_out_need_not_be_there_to_predict(run, sites):
    run("train", *FILES, "--label", "readmitted", "--task", "disease")
    answers = run("predict", "model.json", "new.csv").stdout
    table = pd.read_csv("new.csv", dtype=str)
    table.drop(columns=["country", "admitted"]).to_csv("short.csv", index=False)
    assert run("predict", "model.json", "short.csv").stdout == answers


def test_the_sample_is_not_written_over(run, sites):
    assert run("demo", "sites", "--out", ".", exit_code=1).stderr == (
        "Error: north.csv is there already. Choose another folder.\n"
    )
    assert {path.stem for path in sites.glob("*.csv")} == set(SITES)


# The same rows as people write them: each must give the very model of the plain file.
def tidy():
    rng = np.random.default_rng(5)
    n = 90
    frame = pd.DataFrame(
        {
            "age": np.round(rng.normal(60, 12, n), 1),
            "cost": np.round(rng.uniform(500, 25_000, n), 2),
            "smoker": rng.choice(["yes", "no"], n),
            "ward": rng.choice(["A", "B", "C"], n),
        }
    )
    frame.loc[rng.choice(n, 9, replace=False), "age"] = np.nan
    score = frame["age"].fillna(60) / 12 + (frame["smoker"] == "yes") + rng.normal(0, 1, n)
    return frame.assign(sick=np.where(score > score.median(), "ill", "well"))


def spelled(values, missing):
    return [missing[i % len(missing)] if v != v else str(v) for i, v in enumerate(values)]


def german(frame):
    numbers = {c: [v.replace(".", ",") for v in spelled(frame[c], [""])] for c in ("age", "cost")}
    text = frame.assign(**numbers).to_csv(index=False, sep=";", lineterminator="\r\n")
    return b"\xef\xbb\xbf" + text.encode()


def arrow(frame):
    file = io.BytesIO()
    typed = frame.assign(
        smoker=pd.array(frame["smoker"] == "yes", dtype="boolean"),
        ward=frame["ward"].astype("category"),
        sick=frame["sick"].astype("category"),
        seen=pd.date_range("2024", periods=len(frame)),
        card=4_929_000_000_000_000 + 7919 * np.arange(len(frame)),
    )
    typed.to_parquet(file)
    return file.getvalue()


def with_extra(frame):
    days = pd.date_range("2024", periods=len(frame))
    return frame.assign(
        us=days.strftime("%m/%d/%Y"), de=days.strftime("%d.%m.%Y"), long=days.strftime("%d-%b-%Y"),
        stamp=days.strftime("%Y-%m-%dT%H:%M:%SZ"), digits=days.strftime("%Y%m%d"),
        card=[str(90_000_000_000_000_000_000 + 7919 * i) for i in range(len(frame))],
        note=['said "no,\nthanks"'] * len(frame),
    )  # fmt: skip


NA = ["", "NA", "N/A", "n/a", "NaN", "null", "NULL", "-", "?", ".", "#N/A", "<NA>"]
WRITTEN = {
    "German Excel": ("a.csv", german),
    "UTF-16 with tabs": ("a.csv", lambda f: f.to_csv(index=False, sep="\t").encode("utf-16")),
    "gzip": ("a.csv.gz", lambda f: gzip.compress(f.to_csv(index=False).encode())),
    "old Mac line ends": ("a.csv", lambda f: f.to_csv(index=False, lineterminator="\r")),
    "missing in twelve ways": ("a.csv", lambda f: f.assign(age=spelled(f["age"], NA))),
    "yes and no in any case": (
        "a.csv",
        lambda f: f.assign(smoker=[v if i % 2 else v.upper() for i, v in enumerate(f["smoker"])]),
    ),
    "dollars and thousands": ("a.csv", lambda f: f.assign(cost=[f"${v:,.2f}" for v in f["cost"]])),
    "euros": ("a.csv", lambda f: f.assign(cost=[f"{v:.2f} €" for v in f["cost"]])),
    "percent": (
        "a.csv",
        lambda f: f.assign(age=[v and f"{v}%" for v in spelled(f["age"], [""])]),
    ),
    "blanks round names and labels": (
        "a.csv",
        lambda f: f.assign(sick=f["sick"] + "  ").rename(columns={"age": " age ", "sick": "sick "}),
    ),
    "dates, cards and notes": ("a.csv", with_extra),
    "Parquet types": ("a.parquet", arrow),
}  # fmt: skip


@pytest.fixture(scope="module")
def pooled_answers():
    """What a pooled pipeline says of every row."""
    frame = tidy()
    columns = ColumnTransformer(
        [
            ("age", FeatureUnion([
                ("value", make_pipeline(SimpleImputer(), StandardScaler())),
                ("gap", MissingIndicator()),
            ]), ["age"]),
            ("cost", StandardScaler(), ["cost"]),
            ("switch", "passthrough", ["smoker"]),
            ("level", OneHotEncoder(), ["ward"]),
        ]
    )  # fmt: skip
    pooled = make_pipeline(columns, SVC(kernel="linear", C=1.0, tol=1e-10))
    return pooled.fit(as_numbers(frame), frame["sick"]).decision_function(as_numbers(frame))


@pytest.mark.parametrize("way", WRITTEN)
def test_the_same_rows_give_the_pooled_model_however_they_are_written(
    run, tmp_path, pooled_answers, way
):
    name, write = WRITTEN[way]
    content = write(tidy())
    content = content.to_csv(index=False) if isinstance(content, pd.DataFrame) else content
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    run("train", name, "--label", "sick", "--method", "dsvm", "--C", "1", "--tol", "1e-9")
    labels, values, _ = answers(run("predict", "model.json", name).stdout)
    np.testing.assert_allclose(values, pooled_answers, atol=1e-3)
    assert labels == np.where(pooled_answers > 0, "well", "ill").tolist()


def test_an_accent_of_its_own_is_the_same_letter(run, tmp_path):
    """As some machines write é: e, and an accent that stands for itself."""
    frame = tidy().rename(columns={"age": "\u00e2ge"}).replace({"ward": {"A": "\u00e9t\u00e9"}})
    text = frame.to_csv(index=False)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_text(unicodedata.normalize("NFD", text))
    run("train", "a.csv", "b.csv", "--label", "sick")
    names = read_model("model.json").columns.features
    assert names[0] == "\u00e2ge"
    assert [name for name in names if name.startswith("ward=")] == ["ward=B", "ward=C", "ward=été"]
    said = [run("predict", "model.json", name).stdout for name in ("a.csv", "b.csv")]
    assert said[0] == said[1]


@pytest.mark.parametrize("is_one_file", [True, False])
def test_a_column_in_percent_at_one_node_is_refused(run, tmp_path, is_one_file):
    """Both without a sign: in one file with a column of nodes, and in two files."""
    rng = np.random.default_rng(0)
    frames = []
    for node, factor in (("north", 1.0), ("south", 100.0)):
        share = factor * rng.uniform(0.8, 1.0, 40).round(4)
        label = np.where(rng.random(40) < 0.5, "no", "yes")
        frames.append(pd.DataFrame({"share": share, "site": node, "sick": label}))
        frames[-1].drop(columns="site").to_csv(tmp_path / f"{node}.csv", index=False)
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    files = ["all.csv", "--node", "site"] if is_one_file else ["north.csv", "south.csv"]
    done = run("train", *files, "--label", "sick", exit_code=1)
    assert "Node south has 'share' about" in done.stderr
    assert "times as large as north: nearly all of its numbers are above" in done.stderr
    run("train", *files, "--label", "sick", "--kind", "share=number")
