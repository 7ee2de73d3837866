"""Measurements that can be run again: ``make bench``."""
