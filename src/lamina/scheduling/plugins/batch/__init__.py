"""Place plugins: they choose nodes for many pods at once."""
