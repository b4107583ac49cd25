"""What is known of a structured program before it is printed."""
