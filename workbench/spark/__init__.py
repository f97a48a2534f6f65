"""The shared plan on Spark: sources, level 1 in tasks, the operator in state, the driver. Import its modules."""
