"""The command line: one module per group of commands; the only place that exits."""
