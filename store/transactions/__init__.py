"""Transactions as pure functions: many operations on documents and pairs, and what they were decided on."""
