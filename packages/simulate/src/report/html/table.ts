import { type Content, type Markup, markup } from './markup.js'

export interface Column<Row> {
  readonly heading: string
  readonly cell: (row: Row) => Content
  /** Numbers stand at the right, below each other. */
  readonly isNumber?: boolean
}

/**
 * A table that scrolls within itself where the page is narrow, also by keys. The first column names the row.
 *
 * @param id unique in the page
 */
export function table<Row>(id: string, caption: string, columns: readonly Column<Row>[], rows: readonly Row[]): Markup {
  const kind = (column: Column<Row>) => (column.isNumber ? 'number' : 'text')
  const cellOf = (row: Row) => (column: Column<Row>, i: number) =>
    i === 0
      ? markup`<th scope="row" class="${kind(column)}">${column.cell(row)}</th>`
      : markup`<td class="${kind(column)}">${column.cell(row)}</td>`
  return markup`<p class="caption" id="${id}">${caption}</p>
<div class="scroll" role="region" tabindex="0" aria-labelledby="${id}"><table aria-labelledby="${id}">
<thead><tr>${columns.map((column) => markup`<th scope="col" class="${kind(column)}">${column.heading}</th>`)}</tr></thead>
<tbody>${rows.map((row) => markup`<tr>${columns.map(cellOf(row))}</tr>\n`)}</tbody>
</table></div>
`
}

/** Terms with a value each. */
export function figures(entries: readonly (readonly [term: string, value: Content])[]): Markup {
  return markup`<dl class="figures">${entries.map(([term, value]) => markup`<div><dt>${term}</dt><dd>${value}</dd></div>\n`)}</dl>
`
}
