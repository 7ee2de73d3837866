"""Measurements that anyone can re-run: ``make bench``."""
