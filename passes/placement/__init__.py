"""Which device computes what, and what is sent between them: before and after fusion."""
