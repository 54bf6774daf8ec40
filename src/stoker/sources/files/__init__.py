"""Files, wherever they are: listing them, opening them, and reading samples out of them."""
