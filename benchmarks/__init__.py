"""What the speed claims rest on: ratios measured in one run, with the data and the machine recorded."""
