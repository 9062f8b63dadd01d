import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { bytes, percent, quoted } from '@sluice/core/internal'
import type { Resolvers } from '@sluice/policies'
import type { SimulateOptions, SimulationReport } from '@sluice/simulate'
import type { Command, CommandEnvironment, OptionValues } from '../../program/command.js'
import { shareOption } from '../../program/options.js'
import { UsageError } from '../../program/usage-error.js'
import { checkReportFile, writeReport } from './write-file.js'
import { checkWritable, writeNew } from './write-new.js'

const FINE = 0
const FOUND = 1
/** The options that may name a file to read. */
const INPUTS = ['document', 'against', 'good', 'resolvers']

export const simulate: Command = {
  name: 'simulate',
  summary: 'propose limits from access logs, or play the logs by a document, and show who would be refused',
  description: `Proposes limits from access logs, as a document in report mode, and shows whom they would refuse.
With --document, plays the logs by that document, in the time of the log, before it refuses anyone.
It asks no Redis, and sends nothing.`,
  operands: { placeholder: 'LOG…', min: 1, max: 1000 },
  options: {
    document: {
      type: 'string',
      placeholder: 'FILE',
      text: 'the document of policies, in YAML or JSON',
      default: 'proposed from the logs',
    },
    write: { type: 'string', placeholder: 'FILE', text: 'write the proposed document to a new file' },
    against: { type: 'string', placeholder: 'FILE', text: 'the document before a change, to compare with' },
    'max-refused': {
      type: 'string',
      placeholder: 'SHARE',
      text: 'the share of requests, such as 0.1%, that --against may newly refuse',
    },
    since: { type: 'string', placeholder: 'TIME', text: 'leave out earlier requests: 2026-03-01T12:00:00Z' },
    until: { type: 'string', placeholder: 'TIME', text: 'leave out requests of that time and later ones' },
    format: {
      type: 'string',
      placeholder: 'FORMAT',
      text: 'the form of the logs: a name, or the log_format of nginx',
      default: 'recognised',
    },
    good: {
      type: 'string',
      placeholder: 'CLIENT',
      text: 'a client that must not be refused: a network, user=NAME, .FIELD=VALUE, or a file of these; again for more',
      repeats: true,
    },
    curve: { type: 'boolean', text: 'find the worst window of each client, and the effect of other limits' },
    client: {
      type: 'string',
      placeholder: 'FIELD',
      text: "the field with the client's address",
      default: 'that of the connection',
    },
    'trust-proxy': {
      type: 'string',
      placeholder: 'NETWORK',
      text: 'a proxy whose X-Forwarded-For names the client; again for more',
      repeats: true,
    },
    field: {
      type: 'string',
      placeholder: 'NAME=FIELD',
      text: 'the field that a policy reads as user, route, header:NAME or another key; again for more',
      repeats: true,
    },
    assume: {
      type: 'string',
      placeholder: 'NAME=VALUE',
      text: 'what every request has, as the log lacks it: host, route, duration, …; again for more',
      repeats: true,
    },
    resolvers: { type: 'string', placeholder: 'FILE', text: 'a module with the functions keys, tiers and costs' },
    json: { type: 'boolean', text: 'print JSON' },
    html: { type: 'string', placeholder: 'FILE', text: 'write a page with plots' },
    identities: {
      type: 'string',
      placeholder: 'plain',
      text: 'names of clients in JSON and in the page',
      default: 'pseudonyms',
    },
    lenient: { type: 'boolean', text: 'accept any number of lines that are not understood' },
  },
  examples: [
    'sluice simulate /var/log/nginx/access.log --good partners.txt --write proposal.yaml',
    'sluice simulate /var/log/nginx/access.log --document policies.yaml',
    'zcat access.log.*.gz | sluice simulate - --document policies.yaml --curve --html report.html',
    'sluice simulate access.log --document new.yaml --against old.yaml --good partners.txt',
  ],
  notes:
    'Exit code: 0 played or proposed, 1 a client marked good would be refused, or none is in the log, or a change refuses more than --max-refused, 2 wrong usage, something cannot be read, or the log says too little for a proposal.',

  async run(values, environment, files) {
    const { stdout } = environment
    const html = values.html === undefined ? undefined : String(values.html)
    if (html === '-') throw new UsageError('--html: expected a file')
    const inputs = [...files, ...INPUTS.flatMap((name) => linesOf(values, name) ?? [])]
    if (html !== undefined) await checkReportFile(html, inputs)
    const maxRefused = maxRefusedOf(values)
    const write = values.write === undefined ? undefined : String(values.write)
    if (write !== undefined) {
      if (values.document !== undefined) throw new UsageError('--write: expected no --document beside it')
      await checkWritable(write)
    }
    const { documentText, pageOf, textOf, withPseudonyms } = await import('@sluice/simulate')
    const report = await played(await optionsOf(values, files), environment)
    const shown = showsIdentities(values) ? report : withPseudonyms(report)
    if (html !== undefined) await writeReport(html, pageOf(shown), inputs)
    if (write !== undefined && report.proposal) await writeNew(write, documentText(report.proposal))
    stdout.write(values.json ? `${JSON.stringify(shown, null, 2)}\n` : textOf(report))
    const refused = report.against?.requestsNewlyRefused ?? 0
    if (refused > maxRefused) {
      environment.stderr.write(
        `sluice: the change newly refuses ${percent(refused)} of the requests, more than --max-refused ${values['max-refused']}\n`,
      )
      return FOUND
    }
    return report.good && (report.good.refused.length > 0 || report.good.seen === 0) ? FOUND : FINE
  },
}

/** The share of requests that a change may newly refuse. */
function maxRefusedOf(values: OptionValues): number {
  const share = shareOption(values, 'max-refused')
  if (share !== undefined && values.against === undefined) {
    throw new UsageError('--max-refused: expected --against FILE beside it')
  }
  return share ?? Number.POSITIVE_INFINITY
}

/** The values of an option that may be repeated. */
function linesOf(values: OptionValues, name: string): readonly string[] | undefined {
  return values[name] === undefined ? undefined : String(values[name]).split('\n')
}

/** Without a document, one is proposed. */
type Options = Omit<SimulateOptions, 'document'> & { readonly document: string | undefined }

async function optionsOf(values: OptionValues, logs: readonly string[]): Promise<Options> {
  const text = (name: string) => (values[name] === undefined ? undefined : String(values[name]))
  const lines = (name: string) => linesOf(values, name)
  const document = text('document')
  if (document === undefined) {
    for (const option of ['against', 'curve']) {
      if (values[option] !== undefined) throw new UsageError(`--${option}: expected --document FILE beside it`)
    }
  }
  showsIdentities(values)
  const resolvers = text('resolvers')
  return {
    logs,
    document,
    against: text('against'),
    since: text('since'),
    until: text('until'),
    format: text('format'),
    isLenient: values.lenient === true,
    good: lines('good') ?? [],
    curve: values.curve === true,
    client: text('client'),
    trustProxy: lines('trust-proxy'),
    fields: pairsOf('field', lines('field')),
    assume: pairsOf('assume', lines('assume')),
    ...(resolvers !== undefined && { resolvers: await resolversIn(resolvers) }),
  }
}

function showsIdentities({ identities = 'pseudonyms' }: OptionValues): boolean {
  if (identities === 'plain' || identities === 'pseudonyms') return identities === 'plain'
  throw new UsageError(`--identities: expected plain or pseudonyms, got ${quoted(String(identities))}`)
}

function pairsOf(option: string, texts: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const equals = text.indexOf('=')
      if (equals > 0) return [text.slice(0, equals), text.slice(equals + 1)]
      throw new UsageError(`--${option}: expected NAME=…, got ${quoted(text)}`)
    }),
  )
}

/** The functions of a module: named exports, or those of its default. */
async function resolversIn(file: string): Promise<Resolvers> {
  let module: { readonly default?: Resolvers } & Resolvers
  try {
    module = await import(pathToFileURL(file).href)
  } catch (error) {
    throw new UsageError(`--resolvers: cannot load ${quoted(file)}: ${(error as Error).message}`)
  }
  const { keys, tiers, costs } = { ...module.default, ...module }
  if (!keys && !tiers && !costs)
    throw new UsageError(`--resolvers: ${quoted(file)}: expected keys, tiers or costs, got none`)
  return { ...(keys && { keys }), ...(tiers && { tiers }), ...(costs && { costs }) }
}

/** Plays with a line of progress for people. The first signal ends reading, and the report is of what was read. */
async function played({ document, ...options }: Options, environment: CommandEnvironment): Promise<SimulationReport> {
  const { propose, simulate: play, SimulationError } = await import('@sluice/simulate')
  const { stderr, untilStopped } = environment
  const leaving = new AbortController()
  untilStopped?.().then(() => leaving.abort())
  // With a million clients the heap holds their names. V8 would let it grow to twice that before it collects: 340 MB, not 280.
  setFlagsFromString('--heap-growing-percent=20')
  let shownAt = 0
  const onProgress = (read: number, total: number | undefined) => {
    const now = performance.now()
    if (!stderr.isTTY || now - shownAt < PROGRESS_EVERY_MS) return
    shownAt = now
    const share = total ? ` of ${bytes(total)}, ${Math.floor((100 * read) / total)} %` : ''
    stderr.steer(`\r\u001b[K${bytes(read)}${share}`)
  }
  try {
    const all = { ...options, identities: 'plain', signal: leaving.signal, onProgress } as const
    return await (document === undefined ? propose(all) : play({ ...all, document }))
  } catch (error) {
    throw error instanceof SimulationError ? new UsageError(error.message) : error
  } finally {
    if (shownAt > 0) stderr.steer('\r\u001b[K')
  }
}

const PROGRESS_EVERY_MS = 250
