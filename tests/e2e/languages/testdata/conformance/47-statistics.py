# A regression's table, which has the time in it.
# normalise: statsmodels-clock

# %%
import numpy as np
import statsmodels.api as sm

x = np.arange(20.0)
y = 3 * x + np.sin(x)
fit = sm.OLS(y, sm.add_constant(x)).fit()
fit.summary()

# %%
print(fit.summary())

# %%
fit.params, fit.rsquared
