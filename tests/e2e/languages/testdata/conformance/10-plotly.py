# plotly: figures as JSON and as what its default renderer makes of them.
# normalise: uuids

# %%
import plotly.graph_objects as go

fig = go.Figure(go.Scatter(x=[1, 2, 3], y=[4, 1, 2], name="line"))
fig.update_layout(title="A line")
fig

# %%
import plotly.express as px

px.bar(x=["a", "b"], y=[1, 2]).show()

# %%
import plotly.io as pio

print(pio.renderers.default)
fig.show(renderer="notebook_connected")
