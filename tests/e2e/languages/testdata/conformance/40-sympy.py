# Formulas: LaTeX next to plain text.

# %%
import sympy as sp

x, y = sp.symbols("x y")
sp.integrate(sp.sin(x) * x, x)

# %%
sp.init_printing()
sp.Matrix([[x, 1], [y**2, sp.Rational(1, 3)]])

# %%
[sp.Eq(x**2, 2), sp.solve(x**2 - 2, x)]

# %%
sp.pprint(sp.Sum(1 / x**2, (x, 1, sp.oo)))

# %%
print(sp.latex(sp.sqrt(x) / y))
sp.pi.evalf(50)
