"""Statements of whole calls: their verifier and interpreter."""
