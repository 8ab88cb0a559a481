"""The subcommands of `ragkit`, one module each, imported only when called.

A module `ragkit/commands/NAME.py` holds a click command or group called `command`.
`ragkit.cli` lists the names with their one-line help, so that `ragkit --help` imports none.
"""
