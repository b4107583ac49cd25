"""Earlier processes' work on loaded functions, in the disk cache: admissions and plans."""
