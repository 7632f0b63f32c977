"""The field: the same rows, updates and questions for every system that could do this job, one oracle for all."""
