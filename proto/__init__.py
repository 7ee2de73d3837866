"""The ``.proto`` files and the stubs that ``make proto`` generates; :mod:`cortado.proto.v1` is the public API."""
