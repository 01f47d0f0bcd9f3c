"""How many known faults of public suites the doctor sees, and how many of its warnings were later corrected."""
