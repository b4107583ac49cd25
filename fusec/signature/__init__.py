"""What a call is given: arguments bound, specified and told apart."""
