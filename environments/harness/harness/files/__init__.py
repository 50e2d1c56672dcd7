"""What goes into and out of /mnt/data."""
