"""Acts: the changes that the console makes. Each is a page that says its effect, and a form that does it once.

::

    GET  /ui/acts/drop-table?table=shop.orders   the present state, the effect, the form
    POST                                         ─► own page? this visitor's form? ─► the name typed? ─► unchanged?
                                                 ─► one call of the public API ─► its effect, or its error

No act by ``GET``, and no rights but the visitor's own.
"""
