"""Us against rivals, in one run, as ratios: `python -m benchmarks`.

settings → problems → reference (the optimum both sides are judged by) → cases, with their rivals
→ results (a JSON line each) → table (docs/benchmarks.md).
"""
