<?php

declare(strict_types=1);

namespace Vodbox;

/**
 * All records of a list. Pages are requested while it is iterated, and each iteration starts at the beginning.
 *
 * @template T
 * @implements \IteratorAggregate<int, T>
 */
final class Records implements \IteratorAggregate
{
    /** @param \Closure(?string): array{records: list<T>, next_cursor: string|null} $fetch */
    public function __construct(private readonly \Closure $fetch, private readonly ?string $cursor)
    {
    }

    /** @return \Generator<int, T> */
    public function getIterator(): \Generator
    {
        foreach ($this->pages() as $page) {
            foreach ($page['records'] as $record) {
                yield $record;
            }
        }
    }

    /**
     * The same as pages, for a program that stores a cursor: `next_cursor` gets the next page, and is null on the last.
     *
     * @return \Generator<int, array{records: list<T>, next_cursor: string|null}>
     */
    public function pages(): \Generator
    {
        $cursor = $this->cursor;
        do {
            $before = $cursor;
            $page = ($this->fetch)($cursor);
            yield $page;
            $cursor = $page['next_cursor'];
        } while ($cursor !== null && $cursor !== $before);
    }

    /** @return T|null the first record. */
    public function first(): mixed
    {
        foreach ($this as $record) {
            return $record;
        }
        return null;
    }
}
