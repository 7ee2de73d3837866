"""Files that others may have made: opened so that they can neither hang, fill nor mislead a process
(:mod:`~cortado.store.files.regular_files`), and those that a user names, which may be pipes
(:mod:`~cortado.store.files.named_files`)."""
