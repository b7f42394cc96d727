"""The paper's figures and table, one module each: what it claims, measured in two regimes."""

from dtsvm.trials import fig2, fig3, fig4, fig5, fig6, fig7, table1
from dtsvm.trials.experiment import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (fig2, fig3, fig4, fig5, fig6, table1, fig7)
}
"""Every experiment, by the name the command line knows it by, in the paper's order."""
