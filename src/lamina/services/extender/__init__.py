"""Answer the stock scheduler: which nodes may take a pod, and which are better."""
