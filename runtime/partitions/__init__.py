"""Steps over several devices: ready actions run where they were placed."""
