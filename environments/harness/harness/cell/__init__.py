"""Cells: sandboxes that are forked from one process that has imported everything."""
