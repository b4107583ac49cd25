"""Steps over several devices: what is ready runs where it was placed."""
