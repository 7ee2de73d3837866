"""Requests of all kinds to every operation of a gateway, from one seed, and checks of each answer.

::

    odd.py      parts that are seldom sent: names, numbers, bodies, headers
    calls.py    a request for an operation of the OpenAPI document, sane and odd parts mixed; and its bytes, damaged
    wire.py     requests as bytes; answers read strictly, and held against the document
    model.py    documents and pairs; each answer is known from the acknowledged calls before it
"""
