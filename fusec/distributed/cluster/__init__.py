"""Workers of Dask's as devices: the connections to them, and the service that runs on each."""
