"""A pipeline, told as a story (``make example-stream``): orders stream in, the sums of each hour stream out.

::

    writer ──► shop.orders ──► Spark reads the changes ──► sums of each hour and shop ──► shop.revenue
                    └──────── both are asked at one timestamp, again and again: they must agree ────┘

A node is started with default settings. A writer puts orders into one table, hour by hour. Beside it a Spark driver, in
a process of its own, reads the changes there, sums them up by hours and shops, and writes each hour that has ended into
another table. In the middle the driver is killed, and one that begins from its checkpoint takes over. Whenever the two
tables are asked at one timestamp, each hour that stands in the second is the sum of its orders in the first; and at the
end each hour is there. Any difference fails the run.
"""
