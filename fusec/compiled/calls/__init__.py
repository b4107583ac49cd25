"""Recent plans, where a call looks first."""
