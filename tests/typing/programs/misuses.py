"""Mistakes that a type checker must find. Each line that says so has one, and no other line has."""

import stoker


class NoLength:
    def __getitem__(self, index: int) -> int:
        return index


class ByName:
    def __getitem__(self, name: str) -> int:
        return len(name)

    def __len__(self) -> int:
        return 1


class Needy:
    def __init__(self, path: str) -> None:
        self.path = path

    def __getitem__(self, index: int) -> int:
        return index

    def __len__(self) -> int:
        return 1


def of_texts(samples: list[str]) -> int:
    return len(samples)


def wants_texts(loader: stoker.Loader[str]) -> None:
    del loader


stoker.Loader()  # error
stoker.Loader(3)  # error
stoker.Loader(object())  # error
stoker.Loader(NoLength())  # error
stoker.Loader(ByName())  # error
stoker.Loader(Needy)  # error
stoker.Loader(iter([1]))  # error
stoker.Loader(stoker.Mix([3]))  # error
stoker.Loader([1], "4")  # error
stoker.Loader([1], 4, True)  # error
stoker.Loader([1], num_workers=2)  # error
stoker.Loader([1], None, shufle=True)  # error
stoker.Loader([1], to=str, shufle=True)  # error
stoker.Loader([1], on_error="ignore")  # error
stoker.Loader([1], shard="automatic")  # error
stoker.Loader([1], workers="four")  # error
stoker.Loader([1], to="troch")  # error
stoker.Loader([1], collate=of_texts)  # error
stoker.Loader([1], collate=3)  # error
stoker.Loader([1], retry="twice")  # error
print(stoker.Loader([1]).epcoh)  # error
wants_texts(stoker.Loader([1], None))  # error
stoker.stream(len)  # error
stoker.stream(len, [1])  # error
stoker.stream(len, ["a"], to="troch")  # error
stoker.stream(len, ["a"], num_workers=2)  # error
stoker.stream(len, ["a"], on_error="ignore")  # error
