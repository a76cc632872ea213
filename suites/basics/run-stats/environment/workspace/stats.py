import statistics
import sys

with open(sys.argv[1]) as file:
    numbers = [float(word) for word in file.read().split()]
print("count", len(numbers))
print("mean", statistics.mean(numbers))
print("median", statistics.median(numbers))
