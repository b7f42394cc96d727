"""The cases, a module each: `run(settings)` returns results, the docstring says how."""
