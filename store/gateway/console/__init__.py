"""The console: pages at ``/ui``, rendered here from the public API's answers to the visitor.

::

    cluster   /ui                           members, what needs attention, jobs, holds
    data      /ui/data[/{db}/{table}[/{key}]]   tables, rows at one time or two, the history of a row
    pairs     /ui/pairs/{namespace}[/{key}]     pairs at one time, one and its history
    schemas   /ui/schemas[/{subject}]       versions, differences, the verdict on another one
    changes   /ui/changes                   a live tail
    calls     /ui/calls                     counts, rates and latencies of each node, slow calls
    roles     /ui/roles                     principals, their tokens and grants
    acts      /ui/acts/{act}                what an operator changes

Each page asks through the call's own client, so that it shows only rows that its visitor may read. Nothing is kept
between two calls. Each change is an act (:mod:`cortado.store.gateway.console.acts`). A page is whole without its
script, which adds the slider, the live tail and reloading.

All data from the cluster is text (:mod:`cortado.store.gateway.console.texts`): templates escape all of it.
"""
