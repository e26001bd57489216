"""What is sent: pure functions from (workload, seed, i) to the i-th request."""
