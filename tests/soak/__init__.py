"""Hours of use in minutes: random loaders under random kills, against the inline oracle. `make soak MINUTES=5`."""
