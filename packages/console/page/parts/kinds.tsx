import type { Identity, PoliciesAnswer } from '../answers.js'
import { useShell } from '../context.js'
import { valueText } from './basics.js'
import { Choice, TextField } from './dialog.js'

/** The kinds that limits count, and those that blocks are most often of. */
export function kindsOf(policies: PoliciesAnswer | undefined, more: readonly string[] = []): readonly string[] {
  const ofLimiters = policies?.limiters.flatMap(({ kinds }) => kinds) ?? []
  const ofDocuments = policies?.documents.flatMap((each) => each.policies.flatMap(({ limits }) => limits)) ?? []
  const kinds = [...more, ...ofLimiters, ...ofDocuments.flatMap(({ kind }) => kind ?? [])]
  return [...new Set(['ip', 'user', ...kinds])].filter((kind) => kind !== 'everyone')
}

/** The value of a composed kind, such as `ip+route`, is its parts, separated by spaces. */
export function identityFrom(kind: string, text: string): Identity {
  const value = text.trim()
  return { kind, value: kind.includes('+') ? value.split(/ +/) : value }
}

export function KindField({ identity, set }: { identity: Identity; set(identity: Identity): void }) {
  const kinds = kindsOf(useShell().policies, [identity.kind])
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
