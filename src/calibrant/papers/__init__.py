"""Published numbers as data files, and receipts that hold ours against them."""
