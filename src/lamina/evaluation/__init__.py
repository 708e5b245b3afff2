"""What runs were worth: result tables in, comparisons with confidence intervals out. Runs nothing itself."""
