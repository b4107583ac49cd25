"""Programs with branches, loops, views, aliasing arguments and element updates."""
