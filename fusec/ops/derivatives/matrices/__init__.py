"""Rules of linear algebra."""
