"""The version, said once: the package, its workers on other machines, and the build all read it here."""

__version__ = "0.1.0"
