"""Window aggregates: pure parts. Lists of frequent items, synopses and their sharing, answers that are due."""
