import { counted, percent } from '@sluice/core/internal'
import type { Comparison } from '../../../report.js'
import { type Markup, markup } from '../markup.js'
import { clientsTable } from './clients.js'

/** The effect of the change from the earlier policies. */
export function comparisonSection({ newlyRefused, noLongerRefused, requestsRefused }: Comparison): Markup {
  const change =
    requestsRefused === 0
      ? 'The share of refused requests is the same.'
      : `${percent(Math.abs(requestsRefused))} of the requests ${requestsRefused > 0 ? 'would be refused in addition' : 'would no more be refused'}.`
  return markup`<section aria-labelledby="against"><h2 id="against">Compared with the earlier policies</h2>
<p>+${counted(newlyRefused.length, 'client')} refused, −${counted(noLongerRefused.length, 'client')}. ${change}</p>
${newlyRefused.length > 0 ? clientsTable('newly-refused', 'Clients that would be refused by the new policies alone', newlyRefused) : ''}
${noLongerRefused.length > 0 ? clientsTable('no-longer-refused', 'Clients that would be refused by the earlier policies alone', noLongerRefused) : ''}</section>
`
}
