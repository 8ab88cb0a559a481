"""`python -m ragkit` is the command `ragkit`."""

from ragkit.cli import main

main()
