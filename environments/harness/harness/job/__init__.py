"""The execution of cells and commands, and the clock that ends them."""
