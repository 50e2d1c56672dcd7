numbers <- c(2, 4, 6)
cat("mean:", mean(numbers), "\n")
