"""How answers become an act: what to play, what to ask for. Arrays in, arrays out, no training code."""
