"""One file per version of the tables. A released file never changes."""
