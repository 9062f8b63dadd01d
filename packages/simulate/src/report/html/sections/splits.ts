import { grouped, percent } from '@sluice/core/internal'
import type { Split, SplitReport } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { table } from '../table.js'
import { shareOf } from './overview.js'

/** What is refused, by groups of paths, statuses and kinds of clients. */
export function splitsSection({ byPaths, byStatus, byClient }: SplitReport): Markup {
  return markup`<section aria-labelledby="splits"><h2 id="splits">What would be refused</h2>
${splitTable('split-paths', 'By paths', byPaths)}${splitTable('split-status', 'By status', byStatus)}${splitTable('split-client', 'By kind of client, as its user agent says', byClient)}</section>
`
}

function splitTable(id: string, caption: string, splits: readonly Split[]): Markup {
  if (splits.length === 0) return markup``
  return table(
    id,
    caption,
    [
      { heading: 'Of', cell: ({ name }) => markup`<span class="whole">${name}</span>` },
      { heading: 'Requests', cell: ({ requests }) => grouped(requests), isNumber: true },
      { heading: 'Refused', cell: ({ refused }) => grouped(refused), isNumber: true },
      { heading: 'Share refused', cell: (split) => percent(shareOf(split.refused, split.requests)), isNumber: true },
    ],
    splits,
  )
}
