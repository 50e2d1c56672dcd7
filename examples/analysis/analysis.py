import matplotlib.pyplot as plt
import pandas as pd

rides = pd.read_csv("rides.csv", parse_dates=["date"])
rides["month"] = rides["date"].dt.month_name().str[:3]
monthly = rides.groupby("month", sort=False).agg(
    days=("rides", "size"), rides=("rides", "sum"), temperature=("temperature_c", "mean")
)
print(monthly.round(1).to_string())
print()
print("correlation with the number of rides:")
print(rides[["temperature_c", "rain_mm", "weekend"]].corrwith(rides["rides"]).round(2).to_string())

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
monthly["rides"].plot.bar(ax=left, title="Rides by month", color="tab:blue")
rides.plot.scatter("temperature_c", "rides", c="rain_mm", colormap="viridis_r", ax=right, title="Temperature and rain")
fig.tight_layout()
fig.savefig("rides.png", dpi=120)
plt.show()

monthly.to_excel("rides-by-month.xlsx")
