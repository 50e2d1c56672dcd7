"""The stream: frames from and to the service, and the connections in them."""
