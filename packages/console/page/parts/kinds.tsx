import type { Identity } from '../answers.js'
import { useShell } from '../context.js'
import { useAsk } from '../live/use-ask.js'
import { valueText } from './basics.js'
import { Choice, TextField } from './dialog.js'

/** The kinds that limits count and that the store has, and those that blocks are most often of. */
export function useKinds(more: readonly string[] = []): readonly string[] {
  const { has } = useShell()
  const { answer } = useAsk<{ kinds: readonly string[] }>(has('/api/kinds') ? '/api/kinds' : undefined)
  return [...new Set(['ip', 'user', ...more, ...(answer?.kinds ?? [])])]
}

/** The value of a composed kind, such as `ip+route`, is its parts, separated by spaces. */
export function identityFrom(kind: string, text: string): Identity {
  const value = text.trim()
  return { kind, value: kind.includes('+') ? value.split(/ +/) : value }
}

export function KindField({ identity, set }: { identity: Identity; set(identity: Identity): void }) {
  const kinds = useKinds([identity.kind])
  const value = valueText(identity)
  return (
    <div class="pair">
      <Choice
        label="Kind"
        value={identity.kind}
        of={kinds.map((kind) => [kind, kind] as const)}
        set={(kind) => set(identityFrom(kind, value))}
      />
      <TextField label="Value" value={value} isRequired set={(text) => set(identityFrom(identity.kind, text))} />
    </div>
  )
}
