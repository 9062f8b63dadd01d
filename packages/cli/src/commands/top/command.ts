import type { RedisStore } from '@sluice/core'
import type { Command, CommandEnvironment, OptionValues } from '../../program/command.js'
import { DONE } from '../../program/exit-codes.js'
import { durationOption, wholeNumberOption } from '../../program/options.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { withStore } from '../../redis/store.js'
import { Offenders } from './offenders.js'
import { lineOf, screenOf } from './text.js'
import { urlsOf } from './urls.js'
import { type Period, watch } from './watch.js'

const EVERY_MS = 1000
const MAX_URLS = 50
const ROWS = 10
/** Moves to the top left, and clears the screen below the text. */
const CLEAR = '\u001b[H\u001b[J'

export const top: Command = {
  name: 'top',
  summary: 'watch what servers decide, live',
  description: `Shows what servers decide, refuse and wait for, every second, from the metrics that @sluice/prometheus shows to
Prometheus: give the URL of each process. On a terminal it is a screen, elsewhere a line each time. Ends with Ctrl-C.`,
  operands: { placeholder: '[URL…]', min: 0, max: MAX_URLS },
  options: {
    every: { type: 'string', placeholder: 'TIME', text: 'how often, 100ms to 60s', default: '1s' },
    count: { type: 'string', placeholder: 'N', text: 'end after so many times', default: 'never' },
    rows: {
      type: 'string',
      placeholder: 'N',
      text: 'policies that are shown, the busiest first',
      default: String(ROWS),
    },
    offenders: {
      type: 'boolean',
      text: 'also the identities that are refused most, from Redis: its stores need the option offenders',
    },
    ...REDIS_OPTIONS,
    json: { type: 'boolean', text: 'print a line of JSON each time' },
  },
  examples: [
    'sluice top http://localhost:3000/metrics',
    'sluice top http://10.0.0.1:9464/metrics http://10.0.0.2:9464/metrics --every 5s',
    'METRICS_URL=https://user:password@host/metrics sluice top --json --count 60 > minute.ndjson',
    'REDIS_URL=redis://host:6379 sluice top http://localhost:3000/metrics --offenders',
  ],
  notes: `Without a URL it takes those in METRICS_URL, with spaces between them: a URL with a password belongs there, since
arguments show in process lists. A URL that a load balancer answers shows another process each time: name each process.

Exit code: 0 ended, 2 wrong usage, or no server shows metrics.`,

  async run(values, environment, operands) {
    const urls = urlsOf(operands, environment.env)
    const everyMs = durationOption(values, 'every', { minMs: 100, maxMs: 60_000, otherwiseMs: EVERY_MS })
    const count = wholeNumberOption(values, 'count', { min: 1, max: 1e9, otherwise: Number.POSITIVE_INFINITY })
    const rows = wholeNumberOption(values, 'rows', { min: 1, max: 1000, otherwise: ROWS })
    const stopping = new AbortController()
    environment.untilStopped?.().then(() => stopping.abort())
    const show = async (store?: RedisStore) => {
      const offenders = store && new Offenders(store)
      for await (const period of watch(urls, { everyMs, count, stop: stopping.signal })) {
        environment.stdout.write(await shown(period, { values, environment, rows, offenders }))
      }
      return DONE
    }
    return values.offenders ? withStore(values, environment, show) : show()
  },
}

interface Shown {
  readonly values: OptionValues
  readonly environment: CommandEnvironment
  readonly rows: number
  readonly offenders: Offenders | undefined
}

async function shown(period: Period, { values, environment, rows, offenders }: Shown): Promise<string> {
  const offending = (await offenders?.of(period)) ?? []
  if (values.json) {
    const { failures, ...figures } = period
    return `${JSON.stringify({ at: new Date().toISOString(), ...figures, failures: Object.fromEntries(failures), offenders: offending })}\n`
  }
  if (!environment.stdout.isTTY) return lineOf(period)
  environment.stdout.steer(CLEAR)
  return screenOf(period, rows, offending)
}
