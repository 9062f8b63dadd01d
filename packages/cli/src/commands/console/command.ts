import { PoliciesError } from '@sluice/policies'
import { POSTGRES_OPTIONS } from '../../postgres/client.js'
import type { Command } from '../../program/command.js'
import { DONE, EXIT_CODES, REFUSED } from '../../program/exit-codes.js'
import { wholeNumberOption } from '../../program/options.js'
import { givenTarget, REDIS_OPTIONS } from '../../redis/given-target.js'
import { redisState } from '../../serve/state.js'
import { documentOf } from '../serve/settings.js'
import { shownPolicies } from './document.js'
import { startConsole } from './serve.js'

const { json: _, ...OF_REDIS } = REDIS_OPTIONS

export const console: Command = {
  name: 'console',
  summary: 'open a console on what Redis stores, for this machine',
  description: `Serves the console on 127.0.0.1, and prints its link. The link opens one session, once, within 60 seconds; the session
lasts 8 hours. Opens no browser, as arguments show in process lists.`,
  options: {
    document: {
      type: 'string',
      placeholder: 'FILE',
      text: 'policies, to show their limits: YAML or JSON; redis:NAME or postgres:NAME for what apply saved',
      default: 'none',
    },
    name: { type: 'string', placeholder: 'NAME', text: 'the limiter that decides by the document', default: 'default' },
    list: { type: 'string', placeholder: 'NAME', text: 'a list in the store; again for more', repeats: true },
    port: { type: 'string', placeholder: 'PORT', text: 'where it listens', default: 'a free one' },
    'read-only': { type: 'boolean', text: 'refuse every change' },
    cluster: { type: 'boolean', text: 'Redis is a cluster; else it is asked, at the start' },
    ...OF_REDIS,
    ...POSTGRES_OPTIONS,
  },
  examples: [
    'REDIS_URL=redis://host:6379 sluice console',
    'sluice console --document policies.yaml --name api --read-only',
  ],
  notes: `It ends on SIGTERM, and on Ctrl-C.\n${EXIT_CODES}`,

  async run(values, environment) {
    const { stdout, stderr } = environment
    const target = givenTarget(values, environment)
    const place = values.document === undefined ? undefined : documentOf(values, environment, true)
    const port = wholeNumberOption(values, 'port', { min: 0, max: 65_535, otherwise: 0 })
    const prefix = String(values.prefix ?? 'sluice:')
    const stopped = environment.untilStopped?.() ?? new Promise<void>(() => {})
    const opened: { close(): unknown }[] = []
    try {
      const state = await redisState(target, prefix, values.cluster === true, true, stderr)
      opened.push(state)
      const policies = place && (await shownPolicies(place, state.client, prefix))
      if (policies) opened.push(policies)
      const console = await startConsole({
        store: state.store,
        documents: policies ? [{ policies, name: String(values.name ?? 'default') }] : [],
        lists: values.list === undefined ? [] : String(values.list).split('\n'),
        port,
        readOnly: values['read-only'] === true,
      })
      opened.push(console)
      stdout.write(`${console.url}\n`)
      stderr.write(`sluice shows ${state.name}: open the link within 60 seconds, it works once\n`)
      await stopped
      return DONE
    } catch (error) {
      if (!(error instanceof PoliciesError)) throw error
      stderr.write(`${error.message}\n`)
      return REFUSED
    } finally {
      for (const each of opened.reverse()) await each.close()
    }
  },
}
