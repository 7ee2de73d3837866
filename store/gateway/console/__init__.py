"""The console: pages for people at ``/ui``, rendered here from what the public API answers to the visitor.

::

    cluster   /ui                           members, what needs attention, jobs, leases
    data      /ui/data[/{db}/{table}[/{key}]]   tables, rows at one time or two, the history of a row
    schemas   /ui/schemas[/{subject}]       versions, differences, the verdict on another one
    changes   /ui/changes                   a live tail
    calls     /ui/calls                     counts, rates and latencies of each node

Each page asks through the call's own client, so that it shows what its visitor may read, and nothing is kept between
two calls. Nothing is changed: there is no form that writes. A page is whole without its script, which adds the slider,
the live tail and reloading.

Whatever comes from the cluster is text (:mod:`cortado.store.gateway.console.texts`): templates escape all of it.
"""
