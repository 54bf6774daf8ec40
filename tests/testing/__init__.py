"""The kit for users passes what is right and, above all, fails on what is wrong."""
