"""Evaluation of runs: summaries in, comparisons with confidence intervals out. This package runs nothing itself."""
