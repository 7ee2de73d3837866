"""Export and import: tables, databases and namespaces as files, and files as rows again.

::

    export   table ── key ranges ── scan at one timestamp ── writer ── part files ── manifest.json
    import   files ── reader ── rows with their places ── bulk stream ── what was refused, set aside

Everything goes through :class:`cortado.store.client.Client`; nothing here knows of a terminal. Progress is written
beside the files as it goes (a *checkpoint*), so that a killed run goes on where it was.
"""
