"""Requests of all kinds to everything that a gateway serves, from one seed, and what must be true of each answer.

::

    odd.py      parts that are seldom sent: names, numbers, bodies, headers
    calls.py    a request for an operation of the OpenAPI document, sane and odd parts mixed; and its bytes, damaged
    wire.py     requests as bytes; answers read strictly, and held against the document
    model.py    documents and pairs whose every answer is known from what was acknowledged before
"""
