import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

export interface ColumnOf<Row> {
  readonly title: string
  /** Numbers are aligned to the right. */
  readonly isNumber?: boolean
  /** The title is read, and not shown. */
  readonly isHidden?: boolean
  show(row: Row): ComponentChildren
}

interface TableProps<Row> {
  readonly name: string
  readonly columns: readonly (ColumnOf<Row> | false | undefined)[]
  readonly rows: readonly Row[] | undefined
  /** The sentence in place of no rows. */
  readonly empty: ComponentChildren
  keyOf(row: Row): string | number
  /** Whether it has so few columns that they fit on a phone. */
  readonly isNarrow?: boolean
  /** Whether a link led to this row. */
  isMarked?(row: Row): boolean
}

/** A table that scrolls by itself where it is wider than the page, also by keys. On a phone, its rows are cards. */
export function Table<Row>({ name, columns: given, rows, empty, keyOf, isNarrow, isMarked }: TableProps<Row>) {
  const columns = given.filter((column) => column !== false && column !== undefined)
  const marked = useRef<HTMLTableRowElement>(null)
  const hasMarked = rows !== undefined && isMarked !== undefined && rows.some(isMarked)
  useEffect(() => {
    if (hasMarked) marked.current?.scrollIntoView({ block: 'center' })
  }, [hasMarked])
  if (!rows) return <p class="empty">One moment.</p>
  if (rows.length === 0) return <p class="empty">{empty}</p>
  const classOf = ({ isNumber }: ColumnOf<Row>) => (isNumber ? 'number' : undefined)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by keys
    <section class={isNarrow ? 'table narrow' : 'table'} aria-label={`${name}, table`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.isHidden ? <span class="hidden">{column.title}</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} {...(isMarked?.(row) && { class: 'marked', ref: marked })}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)} data-title={column.isHidden ? undefined : column.title}>
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

export function More({ next }: { next: (() => Promise<void>) | undefined }) {
  if (!next) return null
  return (
    <button type="button" class="quiet more" onClick={() => void next()}>
      Show more
    </button>
  )
}
