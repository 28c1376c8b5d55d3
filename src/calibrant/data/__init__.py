"""Where real data comes from, and how it is verified. Imports nothing: naming a dataset loads no numerical library."""
