"""What was measured, as text, pages and plots."""
