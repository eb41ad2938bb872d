"""A replay server and answers written for it, so that everything can be tried offline."""
