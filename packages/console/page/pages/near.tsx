import type { NearAnswer } from '../../src/traffic/answers.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Text, Time, Who } from '../parts/basics.js'
import { share, whole } from '../parts/format.js'
import { Table } from '../parts/table.js'
import { Bar } from './client.js'

const EVERY_MS = 10_000

/** Who will be refused next. */
export function Near() {
  const { about } = useShell()
  const found = useAsk<NearAnswer>('/api/near', undefined, EVERY_MS)
  const { answer } = found
  return (
    <>
      <PageHead
        title="Near a limit"
        about="Clients that have used 80 % of a limit or more, when a process saw them last. Those that have used all of it stand last."
      />
      <Failure of={found} />
      {answer?.processes === 0 && !about.features.traffic && (
        <Notice>
          No process records clients that are near a limit. Set <code>traffic: true</code> in <code>consoleFor</code>.
          Processes without a console call <code>recordTraffic(store)</code>.
        </Notice>
      )}
      {!found.error && (answer?.processes !== 0 || about.features.traffic) && (
        <Table
          name="Near a limit"
          rows={answer?.entries}
          empty="No client has used 80 % of a limit."
          keyOf={({ id, policy, limit }) => JSON.stringify([id, policy, limit])}
          columns={[
            { title: 'Client', show: ({ client }) => <Who {...client} /> },
            { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text> },
            { title: 'Limit', show: ({ limit }) => <Text>{limit}</Text> },
            {
              title: 'Used',
              show: ({ used }) => (
                <span class="used">
                  <Bar share={used} /> {share(used)}
                </span>
              ),
            },
            { title: 'Left', isNumber: true, show: ({ remaining }) => whole(remaining) },
            { title: 'Seen', show: ({ at }) => <Time at={at} /> },
          ]}
        />
      )}
    </>
  )
}
