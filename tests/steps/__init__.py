"""Tests of the steps of plans."""
