"""Calls that are watched for infinities and NaN: `fusec.config.check_numerics`."""
