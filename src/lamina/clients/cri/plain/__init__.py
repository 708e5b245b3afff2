"""Any runtime that speaks CRI v1 and nothing better."""
