"""
In scikit-learn's world
=======================

The estimators clone, pickle, sit in pipelines and are searched over. Where the columns of a frame
say task and node, nothing need be routed.
"""

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, cross_val_score

from dtsvm import DTSVM

rng = np.random.default_rng(0)
n = 300
frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "dose", "pulse", "weight"])
frame["disease"] = rng.choice(["flu", "cold"], n)
frame["site"] = rng.choice(["north", "south", "west"], n)
signal = frame["age"] - frame["dose"] + 0.8 * frame["pulse"] * (frame["disease"] == "flu")
y = np.where(signal + 0.4 * rng.normal(size=n) > 0, "sick", "well")

# %%
# Cross-validation as with any classifier.

clf = DTSVM("ring", C=0.1, task_column="disease", node_column="site")
print(cross_val_score(clf, frame, y, cv=5).round(3))

# %%
# And a search: ε₁/ε₂ small makes the tasks alike, large makes them unrelated.

search = GridSearchCV(clf, {"C": [0.01, 0.1, 1.0], "specific_reg": [0.1, 1.0, 10.0]}, cv=3)
search.fit(frame, y)
print(search.best_params_, f"{search.best_score_:.1%}")
