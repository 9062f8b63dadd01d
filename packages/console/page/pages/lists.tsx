import { useState } from 'preact/hooks'
import { ListDialog, UnlistDialog } from '../actions/actions.js'
import type { ListEntry } from '../answers.js'
import { useListText, useShell } from '../context.js'
import { usePages } from '../live/use-ask.js'
import { Failure, Notice, PageHead, Text, Time, Who } from '../parts/basics.js'
import { Choice } from '../parts/dialog.js'
import { More, Table } from '../parts/table.js'
import type { Query } from '../router.js'

export function Lists({ query }: { query: Query }) {
  const { mayAct, open, about } = useShell()
  const { lists } = about.features
  const listText = useListText()
  const [chosen, setList] = useState<string>()
  const list = chosen ?? lists.find((name) => name === query.list) ?? lists[0]
  const found = usePages<ListEntry>(list === undefined ? undefined : '/api/list', { list })
  return (
    <>
      <PageHead title="Lists" about="Clients that policies let in or refuse by name, in every process.">
        {mayAct && list !== undefined && (
          <button type="button" class="primary" onClick={() => open(<ListDialog list={list} />)}>
            Add to a list
          </button>
        )}
      </PageHead>
      {list === undefined ? (
        <Notice>
          This console knows no list. Name one of the store in the option <code>lists</code> of <code>consoleFor</code>,
          such as <code>lists: ['vip']</code>. A policy that uses it has <code>allow: store.list('vip')</code> in code,
          or <code>allowLists</code> in a document.
        </Notice>
      ) : (
        <>
          <div class="filters">
            <Choice label="List" value={list} of={lists.map((each) => [each, listText(each)] as const)} set={setList} />
          </div>
          <Failure of={found} />
          <Table
            name={`Entries of ${list}`}
            rows={found.entries ?? (found.error ? [] : undefined)}
            empty={found.error ? 'The entries are not known.' : 'The list is empty.'}
            keyOf={({ kind, value }) => `${kind}=${value}`}
            columns={[
              { title: 'Client', show: (entry) => <Who {...entry} />, sort: ({ kind, value }) => `${kind} ${value}` },
              { title: 'Reason', show: ({ reason }) => <Text>{reason}</Text>, sort: ({ reason }) => reason },
              {
                title: 'Until',
                isNumber: true,
                sort: ({ expiresAt }) => expiresAt,
                show: ({ expiresAt }) => (expiresAt === undefined ? 'it is removed' : <Time at={expiresAt} />),
              },
              mayAct && {
                title: 'Action',
                isHidden: true,
                show: (entry) => (
                  <button type="button" class="quiet" onClick={() => open(<UnlistDialog {...{ list, entry }} />)}>
                    Remove
                  </button>
                ),
              },
            ]}
          />
          <More next={found.next} />
        </>
      )}
    </>
  )
}
