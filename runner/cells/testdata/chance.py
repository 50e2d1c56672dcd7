"""Run as a cell: prints what is drawn from each source of chance there is, as JSON."""
import ctypes, json, os, random, secrets, ssl, tempfile, uuid
import numpy as np

app = get_ipython().parent
libcrypto = ctypes.CDLL("libcrypto.so.3")

def openssl(name):
    buffer = ctypes.create_string_buffer(16)
    assert getattr(libcrypto, name)(buffer, 16) == 1
    return buffer.raw.hex()

print(json.dumps({
    "random": random.random().hex(),
    "random.Random": random.Random().random().hex(),
    "SystemRandom": random.SystemRandom().random().hex(),
    "numpy, old": np.random.rand().hex(),
    "numpy, new": np.random.default_rng().random().hex(),
    "secrets": secrets.token_hex(16),
    "urandom": os.urandom(16).hex(),
    "uuid1": str(uuid.uuid1()),
    "uuid4": str(uuid.uuid4()),
    "ssl": ssl.RAND_bytes(16).hex(),
    "OpenSSL": openssl("RAND_bytes"),
    "OpenSSL, private": openssl("RAND_priv_bytes"),
    "tempfile": tempfile.NamedTemporaryFile().name,
    "the kernel's id": app.ident,
    "its session": app.session.session,
    "boot": open("/proc/sys/kernel/random/uuid").read(),
    "data's folder": str(os.stat("/mnt/data").st_uid) + " " + str(os.stat("/mnt/data").st_dev),
}))
