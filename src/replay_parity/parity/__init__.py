"""Records to differences, exceptions, outcome and verdict; no I/O at all."""
