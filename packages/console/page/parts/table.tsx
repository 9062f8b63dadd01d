import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { whole } from './format.js'

/** Tables with more rows have a field that filters them. On a phone, they show as many first. */
const MANY_ROWS = 10

export interface ColumnOf<Row> {
  readonly title: string
  /** Numbers are aligned to the right. */
  readonly isNumber?: boolean
  /** The title is read, and not shown. */
  readonly isHidden?: boolean
  show(row: Row): ComponentChildren
  /** By which its title sorts the rows. Without it, it does not. Rows without a value are last. */
  sort?(row: Row): string | number | null | undefined
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

interface Sorting {
  readonly title: string
  readonly isDescending: boolean
}

const texts = new Intl.Collator('en', { numeric: true })

/** The rows in the order of a column; as they were given where it is none. */
function sorted<Row>(rows: readonly Row[], sort: ColumnOf<Row>['sort'], isDescending: boolean): readonly Row[] {
  if (!sort) return rows
  const valued = rows.map((row) => ({ row, value: sort(row) ?? undefined }))
  valued.sort(({ value: one }, { value: other }) => {
    if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined)
    const order =
      typeof one === 'number' && typeof other === 'number' ? one - other : texts.compare(`${one}`, `${other}`)
    return isDescending ? -order : order
  })
  return valued.map(({ row }) => row)
}

/** Once as most people want it: the largest numbers first, and names by the alphabet. Then the other way, then not at all. */
function nextOf<Row>({ title, isNumber = false }: ColumnOf<Row>, now: Sorting | undefined): Sorting | undefined {
  if (now?.title !== title) return { title, isDescending: isNumber }
  return now.isDescending === isNumber ? { title, isDescending: !isNumber } : undefined
}

/** A table that scrolls by itself where it is wider than the page, also by keys. On a phone, its rows are cards. */
export function Table<Row>({ name, columns: given, rows: loaded, empty, keyOf, isNarrow, isMarked }: TableProps<Row>) {
  const columns = given.filter((column) => column !== false && column !== undefined)
  const [sorting, setSorting] = useState<Sorting>()
  const [isWhole, setWhole] = useState(false)
  const body = useRef<HTMLTableSectionElement>(null)
  const marked = useRef<HTMLTableRowElement>(null)
  const hasMarked = loaded !== undefined && isMarked !== undefined && loaded.some(isMarked)
  useEffect(() => {
    if (hasMarked) marked.current?.scrollIntoView({ block: 'center' })
  }, [hasMarked])
  const filter = useFilter(body)
  if (!loaded) return <p class="empty">One moment.</p>
  if (loaded.length === 0) return <p class="empty">{empty}</p>
  const classOf = ({ isNumber }: ColumnOf<Row>) => (isNumber ? 'number' : undefined)
  const by = columns.find(({ title }) => title === sorting?.title)
  const rows = sorted(loaded, by?.sort, sorting?.isDescending === true)
  const isCut = rows.length > MANY_ROWS && filter.text === '' && !isWhole && !hasMarked
  const kind = `${isNarrow ? 'narrow' : ''} ${isCut ? 'cut' : ''}`
  return (
    <>
      {(rows.length > MANY_ROWS || filter.text !== '') && (
        <p class="filter">
          <input
            type="search"
            aria-label={`Filter ${name}`}
            placeholder={`Filter the ${whole(rows.length)} rows that are loaded`}
            value={filter.text}
            onInput={(event) => filter.set(event.currentTarget.value)}
          />
          <span aria-live="polite">{filter.text !== '' && `${whole(filter.shown)} of ${whole(rows.length)} rows`}</span>
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by keys */}
      <section class={`table ${kind}`} aria-label={`${name}, table`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  key={column.title}
                  scope="col"
                  class={classOf(column)}
                  aria-sort={column === by ? (sorting?.isDescending ? 'descending' : 'ascending') : undefined}
                >
                  {column.isHidden ? (
                    <span class="hidden">{column.title}</span>
                  ) : column.sort && rows.length > 1 ? (
                    <button type="button" class="sort" onClick={() => setSorting(nextOf(column, sorting))}>
                      {column.title}
                    </button>
                  ) : (
                    column.title
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {rows.map((row) => (
              <tr key={keyOf(row)} {...(isMarked?.(row) && { class: 'marked', ref: marked })}>
                {columns.map((column) => (
                  <td
                    key={column.title}
                    class={classOf(column)}
                    data-title={column.isHidden ? undefined : column.title}
                  >
                    {column.show(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {isCut && (
        <button type="button" class="quiet more whole" onClick={() => setWhole(true)}>
          Show all {whole(rows.length)}
        </button>
      )}
    </>
  )
}

/** Hides the rows of a table that do not have a text, as they are shown. */
function useFilter(body: { readonly current: HTMLTableSectionElement | null }) {
  const [text, set] = useState('')
  const [shown, setShown] = useState(0)
  // After each rendering: any may bring other rows, or other texts in them.
  useLayoutEffect(() => {
    const wanted = text.trim().toLowerCase()
    const rows = [...(body.current?.rows ?? [])]
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted)
    setShown(rows.filter(({ hidden }) => !hidden).length)
  })
  return { text, set, shown }
}

export function More({ next }: { next: (() => Promise<void>) | undefined }) {
  if (!next) return null
  return (
    <button type="button" class="quiet more" onClick={() => void next()}>
      Show more
    </button>
  )
}
