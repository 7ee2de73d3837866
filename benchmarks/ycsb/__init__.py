"""The workloads of the Yahoo! Cloud Serving Benchmark through the Python client, on one node and on three: ``make
bench-ycsb``.

Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010, §4: a table of records of ten fields of 100 bytes,
and six mixes of reads, updates, inserts, scans and read-modify-writes. :mod:`benchmarks.ycsb.draws` draws the records.
"""
