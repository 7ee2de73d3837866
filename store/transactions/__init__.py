"""Transactions as pure functions: many operations on documents and pairs, and the reads that they were decided on."""
