"""Lists of the API as iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Optional, TypeVar

T = TypeVar("T")


class Page(list[T]):
    """Records of one response. `next_cursor` gets the next page, and is None on the last one."""

    next_cursor: Optional[str] = None


class Records(Generic[T]):
    """All records of a list. Pages are requested while it is iterated, and each iteration starts at the beginning."""

    def __init__(self, fetch: Callable[[Optional[str]], Page[T]], cursor: Optional[str]) -> None:
        self._fetch = fetch
        self._cursor = cursor

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page

    def pages(self) -> Iterator[Page[T]]:
        """The same as pages, for a program that stores a cursor."""
        cursor = self._cursor
        while True:
            page = self._fetch(cursor)
            yield page
            if page.next_cursor is None or page.next_cursor == cursor:
                return
            cursor = page.next_cursor

    def first(self) -> Optional[T]:
        """The first record, or None."""
        return next(iter(self), None)
