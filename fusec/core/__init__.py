"""What stands on nothing of fusec's: records, locks, the machine, the log and the timeline."""
