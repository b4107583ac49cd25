"""Plans that run step by step, as the text of a function."""
