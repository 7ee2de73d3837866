"""``python -m cortado.store.cli``, if the ``cortado`` script is not on the path."""

from cortado.store.cli import main

main()
