import { useId, useState } from 'preact/hooks'
import { useShell } from '../context.js'
import { go } from '../router.js'
import { identityFrom, kindsOf } from './kinds.js'

/** Finds a client, from every page. */
export function ClientSearch({ isLarge }: { isLarge?: boolean }) {
  const { policies } = useShell()
  const kinds = kindsOf(policies)
  const [kind, setKind] = useState('ip')
  const [value, setValue] = useState('')
  const id = useId()
  return (
    <search>
      <form
        class={`client-search ${isLarge ? 'large' : ''}`}
        onSubmit={(event) => {
          event.preventDefault()
          if (value.trim() !== '') go('client', identityFrom(kind, value))
        }}
      >
        <label class="hidden" for={`${id}k`}>
          Kind of client
        </label>
        <select id={`${id}k`} value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          {kinds.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <label class="hidden" for={`${id}v`}>
          Client
        </label>
        <input
          id={`${id}v`}
          value={value}
          type="search"
          autocomplete="off"
          spellcheck={false}
          placeholder={kind === 'ip' ? 'Find a client: 192.0.2.7' : 'Find a client'}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
        <button type="submit" class={isLarge ? 'primary' : ''}>
          Find
        </button>
      </form>
    </search>
  )
}
