import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import type { Command, OptionValues } from '../../program/command.js'
import type { Environment } from '../../program/environment.js'
import { durationOption, wholeNumberOption } from '../../program/options.js'
import { UsageError } from '../../program/usage-error.js'
import { type Target, targetOf } from '../../redis/target.js'
import { examine } from './doctor.js'
import type { DoctorOptions } from './options.js'
import { examineProxies, isRoute } from './proxies.js'
import { EXIT_CODES } from './report.js'
import { DEFAULT_PREFIX, DEFAULT_STORE_TIMEOUT_MS } from './store-needs.js'
import { textOf } from './text.js'

const TIMEOUT_MS = 20_000
const PINGS = 20
const SCAN_CALLS = 200
const SAMPLE = 1000

export const doctor: Command = {
  name: 'doctor',
  summary: 'look over the Redis that limits are counted in, or the proxies before an application',
  description: `Looks over the Redis that Sluice counts in, and says what to do about what it finds. It reads alone: no key is
written, changed or removed. Use the user and the machine that your servers use.

With --url https://…/ip, the address of a route that returns { ip, chain }, it counts the proxies before an
application, and checks that the application trusts exactly these.`,
  options: {
    url: {
      type: 'string',
      placeholder: 'URL',
      text: 'the Redis, or a route; prefer REDIS_URL: arguments show in process lists',
      default: 'REDIS_URL',
    },
    json: { type: 'boolean', text: 'print the report as JSON' },
    prefix: {
      type: 'string',
      placeholder: 'TEXT',
      text: 'prefix of redisStore, after keyPrefix of ioredis',
      default: DEFAULT_PREFIX,
    },
    'store-timeout': {
      type: 'string',
      placeholder: 'TIME',
      text: 'timeout of redisStore',
      default: `${DEFAULT_STORE_TIMEOUT_MS}ms`,
    },
    timeout: {
      type: 'string',
      placeholder: 'TIME',
      text: 'longest time for everything together',
      default: `${TIMEOUT_MS / 1000}s`,
    },
    pings: { type: 'string', placeholder: 'N', text: 'round trips to measure', default: String(PINGS) },
    'scan-calls': {
      type: 'string',
      placeholder: 'N',
      text: 'most calls of SCAN, 500 keys each; 0 looks at no keys',
      default: String(SCAN_CALLS),
    },
    sample: { type: 'string', placeholder: 'N', text: 'keys to measure', default: String(SAMPLE) },
    'master-name': {
      type: 'string',
      placeholder: 'NAME',
      text: 'the master, where REDIS_URL is a Sentinel that watches several',
    },
    cacert: { type: 'string', placeholder: 'FILE', text: 'certificate authority of Redis, for rediss://' },
    cert: { type: 'string', placeholder: 'FILE', text: 'client certificate, for rediss://' },
    key: { type: 'string', placeholder: 'FILE', text: 'key of the client certificate' },
  },
  examples: [
    'REDIS_URL=redis://user:password@host:6379 sluice doctor',
    'REDIS_URL=rediss://host:6380 sluice doctor --cacert ca.pem',
    'sluice doctor --json > report.json',
    'sluice doctor --url https://example.com/ip',
  ],
  notes: `Of a cluster, any node will do: its masters are found from there. Of Sentinel, any Sentinel.
Counts are for each master of a cluster.

Exit code: 0 all is well, 1 warnings, 2 errors or wrong usage.`,

  async run(values, environment) {
    const url = text(values, 'url')
    const report =
      url !== undefined && isRoute(url)
        ? await examineProxies(url, timeoutOf(values))
        : await examine(optionsOf(values, environment))
    const { stdout, env } = environment
    const hasColours = stdout.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
    if (values.json) stdout.write(`${JSON.stringify(report, null, 2)}\n`)
    else stdout.steer(textOf(report, stdout, hasColours))
    return EXIT_CODES[report.status]
  },
}

function optionsOf(values: OptionValues, { env, stderr }: Environment): DoctorOptions {
  const target = targetIn(values, env)
  if (values.url !== undefined && target.password !== undefined) {
    stderr.write('sluice: the password in --url shows in process lists and shell histories: put it into REDIS_URL\n')
  }
  return {
    target,
    prefix: text(values, 'prefix') ?? DEFAULT_PREFIX,
    timeoutMs: timeoutOf(values),
    storeTimeoutMs: durationOption(values, 'store-timeout', {
      minMs: 1,
      maxMs: 60_000,
      otherwiseMs: DEFAULT_STORE_TIMEOUT_MS,
    }),
    pings: wholeNumberOption(values, 'pings', { min: 1, max: 10_000, otherwise: PINGS }),
    scanCalls: wholeNumberOption(values, 'scan-calls', { min: 0, max: 1_000_000, otherwise: SCAN_CALLS }),
    sample: wholeNumberOption(values, 'sample', { min: 1, max: 100_000, otherwise: SAMPLE }),
    masterName: text(values, 'master-name'),
  }
}

const timeoutOf = (values: OptionValues) =>
  durationOption(values, 'timeout', { minMs: 100, maxMs: 600_000, otherwiseMs: TIMEOUT_MS })

function targetIn(values: OptionValues, env: Environment['env']): Target {
  const tls: ConnectionOptions = {
    ...fileOption(values, 'cacert', 'ca'),
    ...fileOption(values, 'cert', 'cert'),
    ...fileOption(values, 'key', 'key'),
  }
  const given = text(values, 'url')
  if (given !== undefined) return targetOf('--url', given, tls)
  if (!env.REDIS_URL) {
    throw new UsageError('no Redis is named: set REDIS_URL, such as redis://user:password@host:6379, or pass --url')
  }
  return targetOf('REDIS_URL', env.REDIS_URL, tls)
}

function fileOption(values: OptionValues, name: string, option: 'ca' | 'cert' | 'key'): ConnectionOptions {
  const file = text(values, name)
  if (file === undefined) return {}
  try {
    return { [option]: readFileSync(file) }
  } catch (error) {
    throw new UsageError(`--${name}: cannot read ${JSON.stringify(file)} (${(error as NodeJS.ErrnoException).code})`)
  }
}

function text(values: OptionValues, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}
