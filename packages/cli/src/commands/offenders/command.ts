import type { OffendersReport, OffendersWindow } from '@sluice/core'
import { instantText, quoted, tableOf } from '@sluice/core/internal'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES } from '../../program/exit-codes.js'
import { wholeNumberOption } from '../../program/options.js'
import { UsageError } from '../../program/usage-error.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { usable } from '../../redis/usable.js'

const DEFAULT_MAX = 20

export const offenders: Command = {
  name: 'offenders',
  summary: 'list the identities that are refused most',
  description: `Lists the identities that a policy refuses most, the first most of all. Stores count refusals where they are made
with offenders: true. Secrets and long values show as their hashes.`,
  options: {
    policy: { type: 'string', placeholder: 'NAME', text: 'the policy that refuses them; needed' },
    in: { type: 'string', placeholder: 'TIME', text: 'in the last 10m, 1h or 1d', default: '1h' },
    max: {
      type: 'string',
      placeholder: 'NUMBER',
      text: 'most that are listed, up to 1000',
      default: String(DEFAULT_MAX),
    },
    ...REDIS_OPTIONS,
  },
  examples: [
    'REDIS_URL=redis://host:6379 sluice offenders --policy api',
    'sluice offenders --policy login --in 10m --max 5 --json',
  ],
  notes: EXIT_CODES,

  async run({ policy, in: window = '1h', ...values }, environment) {
    if (typeof policy !== 'string') throw new UsageError('--policy: expected the name of a policy')
    if (!isWindow(window)) throw new UsageError(`--in: expected 10m, 1h or 1d, got ${quoted(String(window))}`)
    const top = wholeNumberOption(values, 'max', { min: 1, max: 1000, otherwise: DEFAULT_MAX })
    const report = await withStore(values, environment, (store) =>
      usable(() => store.offenders({ policy, top, in: window })),
    )
    environment.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : textOf(policy, report))
    return DONE
  },
}

function isWindow(text: unknown): text is OffendersWindow {
  return text === '10m' || text === '1h' || text === '1d'
}

function textOf(policy: string, { offenders: all, refusals, error, since }: OffendersReport): string {
  if (refusals === 0) {
    return `${JSON.stringify(policy)} has refused no identity since ${instantText(since)}, as far as stores with offenders: true have counted\n`
  }
  const rows = all.map(({ kind, value, refusals: own }) => [
    String(own),
    `${((100 * own) / refusals).toFixed(1)} %`,
    `${kind}=${value}`,
  ])
  const inexact = error > 0 ? `; each count may be too low by ${error}` : ''
  return `${tableOf(['refused', 'share', 'identity'], rows)}\n${refusals} refusals since ${instantText(since)}${inexact}\n`
}
