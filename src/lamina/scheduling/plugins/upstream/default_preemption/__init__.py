"""DefaultPreemption: evicts pods of lower priority when a pod fits nowhere."""
