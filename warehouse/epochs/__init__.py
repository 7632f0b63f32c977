"""What a committed state is: records, their journal, known landing files, crash points, who may write."""
