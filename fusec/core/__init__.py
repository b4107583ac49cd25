"""The ground floor, below all of fusec: records, locks, the machine, the log and the timeline."""
