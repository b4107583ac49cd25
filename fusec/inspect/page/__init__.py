"""The viewer: a compilation as one HTML file, and two of them compared."""
