"""A year of flights out of New York, told as a story in five chapters (``make run``).

A node is started with default settings; the tables are created from Avro schemas; Spark loads them; a schema evolves
while old rows stay; Spark reads everything back at one timestamp, and pandas, which reads the CSV files by itself, must
come to the same answer; a flight is looked up by an index, changed, and read as it was before. Any difference fails
the run. On several nodes (``make run NODES=3``) the leader is killed in the middle of the load, and again in the middle
of Spark's read; the answers must be the same.
"""
