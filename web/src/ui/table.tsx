import type { ReactNode } from 'react'

export interface Column<T> {
  name: string
  cell: (row: T) => ReactNode
  // unnamed columns have no head: their cells say what they are.
  unnamed?: boolean
  // numbers stand at the right.
  number?: boolean
  // hideNarrow leaves the column out on a phone.
  hideNarrow?: boolean
}

// Table is a table of facts. Its caption is read out and not shown.
export function Table<T>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  caption: string
  columns: Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
}) {
  const className = (column: Column<T>) => `${column.number ? 'number' : ''} ${column.hideNarrow ? 'hide-narrow' : ''}`
  return (
    <div className="table-scroll" tabIndex={0} role="group" aria-label={caption}>
      <table className="table">
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) =>
              column.unnamed ? (
                <td key={column.name} />
              ) : (
                <th key={column.name} scope="col" className={className(column)}>
                  {column.name}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.name} className={className(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
