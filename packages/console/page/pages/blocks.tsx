import { useState } from 'preact/hooks'
import { BlockDialog } from '../actions/block.js'
import type { Block } from '../answers.js'
import { useShell } from '../context.js'
import { usePages } from '../live/use-ask.js'
import { Failure, Notice, PageHead } from '../parts/basics.js'
import { BlockTable } from '../parts/blocks.js'
import { Choice, TextField } from '../parts/dialog.js'
import { useKinds } from '../parts/kinds.js'
import { More } from '../parts/table.js'

const EVERY = ''

export function Blocks() {
  const { mayAct, open, about } = useShell()
  const kinds = useKinds()
  const [kind, setKind] = useState(EVERY)
  const [prefix, setPrefix] = useState('')
  const [only, setOnly] = useState(EVERY)
  const found = usePages<Block>(about.features.blocks ? '/api/blocks' : undefined, {
    ...(kind && { kind }),
    ...(prefix && { prefix }),
    ...(only && { bans: true }),
  })
  return (
    <>
      <PageHead
        title="Blocks and bans"
        about="Clients that are refused whatever they have left: by hand, or after strikes."
      >
        {mayAct && about.features.blocks && (
          <button type="button" class="primary" onClick={() => open(<BlockDialog />)}>
            Block a client
          </button>
        )}
      </PageHead>
      {about.features.blocks ? (
        <>
          <div class="filters">
            <Choice
              label="Kind"
              value={kind}
              of={[[EVERY, 'every kind'], ...kinds.map((each) => [each, each] as const)]}
              set={setKind}
            />
            <TextField label="Begins with" value={prefix} set={setPrefix} />
            <Choice
              label="Show"
              value={only}
              of={[
                [EVERY, 'blocks and bans'],
                ['bans', 'bans alone'],
              ]}
              set={setOnly}
            />
          </div>
          <Failure of={found} />
          <BlockTable
            name="Blocks and bans"
            blocks={found.entries ?? (found.error ? [] : undefined)}
            empty={found.error ? 'The blocks are not known.' : 'No client is blocked or banned.'}
          />
          <More next={found.next} />
        </>
      ) : (
        <Notice>This store cannot list its blocks.</Notice>
      )}
    </>
  )
}
