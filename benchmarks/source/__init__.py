"""The source's own experiments, at a scale that fits two cores: doubly-partitioned-index sheet, section 8."""
