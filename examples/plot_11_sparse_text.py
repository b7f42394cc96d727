"""
Sparse rows: words at four sites
================================

Rows of text are mostly zeros. A scipy CSR matrix is used where it lies, at every site; the answer
is that of the same rows written out.
"""

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from dtsvm import DTSVM, Network

rng = np.random.default_rng(0)
WORDS = {
    "fever": ["fever", "hot", "chills", "sweat", "flushed", "temperature"],
    "cough": ["cough", "throat", "sputum", "wheeze", "chest", "breath"],
    "none": ["knee", "appointment", "renewal", "holiday", "paper", "question"],
}
FILLER = [f"word{i}" for i in range(3000)]


def note(topic):
    """A short note: some words of its topic among many that say nothing."""
    if rng.random() < 0.1:  # one note in ten is about something else
        topic = "none"
    return " ".join([*rng.choice(WORDS[topic], 2), *rng.choice(FILLER, 13)])


# %%
# Two questions about notes: is it a fever, is it a cough? The second has few notes.

task = np.array(["fever"] * 300 + ["cough"] * 40)
is_so = rng.random(len(task)) < 0.5
texts = [note(t if yes else "none") for t, yes in zip(task, is_so, strict=True)]
y = np.where(is_so, "yes", "no")
node = rng.integers(4, size=len(task))
X = HashingVectorizer(n_features=2**14, alternate_sign=False).transform(texts)
print(type(X).__name__, X.shape, f"{X.nnz / np.prod(X.shape):.2%} of the entries are not zero")

# %%
# Nothing else changes.

clf = DTSVM(Network.ring(4), C=1.0).fit(X, y, task=task, node=node)
print(clf.info_.status, f"after {clf.info_.n_rounds} rounds, certified gap {clf.info_.gap:.0e}")

new_task = np.repeat(["fever", "cough"], 200)
new_is = rng.random(400) < 0.5
new = HashingVectorizer(n_features=2**14, alternate_sign=False).transform(
    [note(t if yes else "none") for t, yes in zip(new_task, new_is, strict=True)]
)
for t in ("fever", "cough"):
    mine = new_task == t
    score = clf.score(new[mine], np.where(new_is[mine], "yes", "no"), task=t)
    print(f"{t}: {score:.1%} of 200 new notes right")
