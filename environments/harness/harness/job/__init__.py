"""The execution of cells and commands, the clock that ends them, and who drives it."""
