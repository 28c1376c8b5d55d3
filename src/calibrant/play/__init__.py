"""Many rounds of ask, act and learn, each game one compiled scan: state in, state out."""
