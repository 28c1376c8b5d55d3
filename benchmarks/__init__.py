"""What Calibrant costs, measured in one run so that ratios hold on a noisy machine. `make bench` prints the table."""
