import type { CellText } from "./notebook";

// Examples for each language that the images bring. A test runs each of them.

export interface Example {
  title: string;
  cells: CellText[];
}

const code = (text: string): CellText => ({ kind: "code", text: text.trim() });
const note = (text: string): CellText => ({ kind: "markdown", text: text.trim() });

export const examples: Record<string, Example[]> = {
  python: [
    {
      title: "A plot",
      cells: [
        code(`
import numpy as np
import matplotlib.pyplot as plt

x = np.linspace(0, 4 * np.pi, 400)
plt.figure(figsize=(8, 4))
for k in range(1, 5):
    plt.plot(x, np.sin(x * k) / k, label=f"sin({k}x) / {k}")
plt.legend()
plt.title("Harmonics")
plt.show()`),
      ],
    },
    {
      title: "A table, and a file that is made",
      cells: [
        note(`
### Rides by day
The first cell makes the data, the second groups it and leaves a CSV in \`/mnt/data\`.`),
        code(`
import numpy as np, pandas as pd

rng = np.random.default_rng(7)
rides = pd.DataFrame({
    "day": rng.choice(["Mon", "Tue", "Wed", "Thu", "Fri"], 500),
    "km": rng.gamma(2, 3, 500).round(1),
})
rides.head()`),
        code(`
by_day = rides.groupby("day").agg(rides=("km", "size"), mean_km=("km", "mean")).round(2)
by_day.to_csv("by_day.csv")
by_day`),
      ],
    },
    {
      title: "An interactive plot",
      cells: [
        code(`
import plotly.express as px

px.scatter(px.data.iris(), x="sepal_width", y="sepal_length", color="species", height=420)`),
      ],
    },
    {
      title: "Formulas",
      cells: [
        code(`
from sympy import Integral, Eq, exp, oo, symbols

x = symbols("x")
integral = Integral(exp(-x**2), (x, -oo, oo))
Eq(integral, integral.doit())`),
      ],
    },
    {
      title: "Progress, as it happens",
      cells: [
        code(`
import sys, time

for i in range(1, 21):
    time.sleep(0.1)
    print(f"\\rstep {i} of 20  " + "█" * i, end="")
print("\\ndone")`),
      ],
    },
  ],
  javascript: [
    {
      title: "A table of counts",
      cells: [
        code(`
const words = "the quick brown fox jumps over the lazy dog the end".split(" ");
const counts = Object.groupBy(words, (w) => w);
for (const [word, all] of Object.entries(counts)) console.log(word.padEnd(8), "#".repeat(all.length));`),
      ],
    },
    {
      title: "A drawing",
      cells: [
        code(`
const bars = [3, 7, 4, 9, 6];
Deno.jupyter.svg\`<svg xmlns="http://www.w3.org/2000/svg" width="260" height="110">
  \${bars.map((h, i) => \`<rect x="\${i * 50 + 10}" y="\${100 - h * 10}" width="40" height="\${h * 10}" rx="4" fill="#3451c6"/>\`).join("")}
</svg>\``),
      ],
    },
  ],
  typescript: [
    {
      title: "Types and a sum",
      cells: [
        code(`
interface Ride { km: number; minutes: number }

const rides: Ride[] = [{ km: 3.2, minutes: 11 }, { km: 8.1, minutes: 26 }, { km: 1.4, minutes: 6 }];
const speed = (r: Ride): number => r.km / (r.minutes / 60);
for (const ride of rides) console.log(\`\${ride.km} km, \${speed(ride).toFixed(1)} km/h\`);`),
      ],
    },
  ],
  r: [
    {
      title: "A model and its plot",
      cells: [
        code(`
fit <- lm(mpg ~ wt, data = mtcars)
plot(mtcars$wt, mtcars$mpg, pch = 19, col = "#3451c6", xlab = "Weight", ylab = "Miles per gallon")
abline(fit, lwd = 2)`),
        code(`head(mtcars)`),
      ],
    },
  ],
  go: [
    {
      title: "Goroutines",
      cells: [
        code(`
import (
	"fmt"
	"sync"
)

func main() {
	squares := make([]int, 10)
	var all sync.WaitGroup
	for i := range squares {
		all.Add(1)
		go func() {
			defer all.Done()
			squares[i] = i * i
		}()
	}
	all.Wait()
	fmt.Println(squares)
}`),
      ],
    },
  ],
  bash: [
    {
      title: "A pipeline",
      cells: [
        code(`
seq 1 100000 | awk '{ print length($0) }' | sort -n | uniq -c
df -h /mnt/data | tail -n 1`),
      ],
    },
  ],
};

/** first is what an empty page shows for a language. */
export function first(language: string): CellText[] {
  return examples[language]?.[0]?.cells ?? [code("")];
}
