import { grouped } from '@sluice/core/internal'
import type { RefusedClient } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { table } from '../table.js'
import { timeText } from '../words.js'

/** More would be a page that nobody reads; `--json` has them all. */
const MAX_CLIENTS = 100

/** A table of clients that would be refused. */
export function clientsTable(id: string, caption: string, clients: readonly RefusedClient[]): Markup {
  const rest = clients.length - MAX_CLIENTS
  return markup`${table(
    id,
    caption,
    [
      { heading: 'Client', cell: ({ identity, isGood }) => markup`<code>${identity}</code>${isGood ? ' (good)' : ''}` },
      { heading: 'Policy', cell: ({ policy }) => policy },
      { heading: 'Requests', cell: ({ requests }) => grouped(requests), isNumber: true },
      { heading: 'Refused', cell: ({ refused }) => grouped(refused), isNumber: true },
      {
        heading: 'First refused (UTC)',
        cell: ({ firstMs }) => markup`<span class="whole">${timeText(firstMs)}</span>`,
      },
      { heading: 'Statuses', cell: ({ statuses }) => statusesText(statuses) },
      { heading: 'Paths', cell: ({ paths }) => paths.map((path) => markup`<code class="path">${path}</code>`) },
      { heading: 'Agent', cell: ({ agent }) => markup`<span class="agent">${agent ?? '–'}</span>` },
    ],
    clients.slice(0, MAX_CLIENTS),
  )}${rest > 0 ? markup`<p>${grouped(rest)} more are left out; <code>--json</code> lists them.</p>` : ''}`
}

/** Clients in a sentence. */
const NAMED = 3

/** The first of these clients in a sentence, with a link to the section that has them all. */
export function namedClients(sentence: string, clients: readonly Markup[], section: string): Markup | undefined {
  if (clients.length === 0) return undefined
  const more = clients.length > NAMED ? [markup`<a href="#${section}">more</a>`] : []
  const parts = [...clients.slice(0, NAMED), ...more]
  return markup`<p>${sentence}: ${parts.map((part, i) => markup`${i > 0 ? '; ' : ''}${part}`)}.</p>
`
}

function statusesText(statuses: RefusedClient['statuses']): Markup[] {
  return Object.entries(statuses)
    .sort(([, a], [, b]) => b - a)
    .map(([status, count]) => markup`<div class="whole">${status}: ${grouped(count)}</div>`)
}
