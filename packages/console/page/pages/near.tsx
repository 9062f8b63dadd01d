import type { NearAnswer, NearEntry } from '../../src/traffic/answers.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Text, Time, Who } from '../parts/basics.js'
import { counted, share, whole } from '../parts/format.js'
import { Table } from '../parts/table.js'
import { Bar } from './client.js'

const EVERY_MS = 10_000

/** Who will be refused next. */
export function Near() {
  const { about } = useShell()
  const found = useAsk<NearAnswer>('/api/near', undefined, EVERY_MS)
  const { answer } = found
  const full = (answer?.entries ?? []).filter(isFull)
  return (
    <>
      <PageHead
        title="Near a limit"
        about="Clients that have used 80 % of a limit or more, when a process saw them last."
      />
      <Failure of={found} />
      {answer?.processes === 0 && !about.features.traffic && (
        <Notice>
          No process records clients that are near a limit. Set <code>traffic: true</code> in <code>consoleFor</code>.
          Processes without a console call <code>recordTraffic(store)</code>.
        </Notice>
      )}
      {!found.error && (answer?.processes !== 0 || about.features.traffic) && (
        <>
          <NearTable
            name="Near a limit"
            entries={answer?.entries.filter((entry) => !isFull(entry))}
            empty="No client has used 80 % of a limit and has some of it left."
          />
          {full.length > 0 && (
            <details>
              <summary>{counted(full.length, 'limit')} used up: further requests of these clients are refused</summary>
              <NearTable name="Limits that are used up" entries={full} empty="" />
            </details>
          )}
        </>
      )}
    </>
  )
}

const isFull = ({ used }: NearEntry): boolean => used >= 1

interface NearTableProps {
  readonly name: string
  readonly entries: readonly NearEntry[] | undefined
  readonly empty: string
}

function NearTable({ name, entries, empty }: NearTableProps) {
  return (
    <Table
      name={name}
      rows={entries}
      empty={empty}
      keyOf={({ id, policy, limit }) => JSON.stringify([id, policy, limit])}
      columns={[
        {
          title: 'Client',
          show: ({ client }) => <Who {...client} />,
          sort: ({ client }) => `${client.kind} ${client.value}`,
        },
        { title: 'Policy', show: ({ policy }) => <Text>{policy}</Text>, sort: ({ policy }) => policy },
        { title: 'Limit', show: ({ limit }) => <Text>{limit}</Text>, sort: ({ limit }) => limit },
        {
          title: 'Used',
          sort: ({ used }) => used,
          show: ({ used }) => (
            <span class="used">
              <Bar share={used} /> {share(used)}
            </span>
          ),
        },
        {
          title: 'Left',
          isNumber: true,
          show: ({ remaining }) => whole(remaining),
          sort: ({ remaining }) => remaining,
        },
        { title: 'Seen', show: ({ at }) => <Time at={at} />, sort: ({ at }) => at },
      ]}
    />
  )
}
