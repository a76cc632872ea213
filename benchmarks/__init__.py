"""What `make bench` measures: always ratios within one run, never absolute speed."""
