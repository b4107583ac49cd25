"""Measurements as text, pages and plots."""
