"""The notebook's kernel: which it is, how it starts, what it does otherwise, how it ends."""
