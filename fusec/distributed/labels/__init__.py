"""Arrays with labels (xarray's) as arguments: computed as arrays, labelled again."""
