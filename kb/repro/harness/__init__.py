"""What every reproduction runs through: check before measure, whole samples, one judging rule."""
