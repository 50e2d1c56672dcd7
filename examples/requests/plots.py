# curl --data-binary @examples/requests/plots.py -H 'Content-Type: text/x-python' localhost:8080/v1/execute
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 200)
plt.plot(x, np.sin(x))
plt.title("first: sine")
plt.show()

plt.figure(figsize=(4, 4))
plt.plot(np.cos(x), np.sin(x))
plt.title("second: circle")
plt.show()
