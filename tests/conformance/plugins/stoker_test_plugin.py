"""What only a worker comes to import, after it has looked in this folder."""


class PluginError(LookupError):
    pass
