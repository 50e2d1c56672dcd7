# No network, and a server of one's own on the loopback.

# %%
import socket

socket.create_connection(("192.0.2.1", 80), timeout=2)

# %%
socket.gethostbyname("example.com")

# %%
import http.server
import threading
import urllib.request


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from the loopback")

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 8765), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
urllib.request.urlopen("http://127.0.0.1:8765/").read()

# %%
server.shutdown()
server.server_close()

# %%
urllib.request.urlopen("https://example.com")
