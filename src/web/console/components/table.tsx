import type { ComponentChildren } from "preact";

type Column<T> = { title: string; cell(item: T): ComponentChildren };

/** A table that becomes a list of cards on a phone. */
export function Table<T extends { id: number | string }>({ items, columns }: { items: T[]; columns: Column<T>[] }) {
  return (
    <table>
      <thead>
        <tr>
          {columns.map(({ title }) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={item.id}>
            {columns.map(({ title, cell }) => (
              <td key={title} data-label={title}>
                {cell(item)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
