"""What the console changes: acts, each a page that says what will happen, and a form that does it once.

::

    GET  /ui/acts/drop-table?table=shop.orders   what there is now, what will happen, the form
    POST                                         ─► own page? this visitor's form? ─► the name typed? ─► unchanged?
                                                 ─► one call of the public API ─► what was done, or what went wrong

No act by ``GET``, and no rights but the visitor's own.
"""
