numbers = [2, 4, 6]
print("mean:", sum(numbers) / len(numbers))
