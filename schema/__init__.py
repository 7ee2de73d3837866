"""Avro: the format of documents. No I/O, no clock, nothing of tables.

::

    text ──parse──> Schema ──canonical──> fingerprint          which declarations are the same
                      │
                      ├─compatibility─> Incompatibility ...    which versions may follow which
                      ├─pinned, key_types                      which fields a key or an index may rest on
                      ├─documents     dict <-> body            one document at a time, checked both ways
                      ├─json_format   dict <-> JSON
                      └─columnar/     bodies <-> columns       many documents side by side

Bytes and schemas that come from outside are hostile until checked: every bound is in :mod:`cortado.schema.limits`.
"""
