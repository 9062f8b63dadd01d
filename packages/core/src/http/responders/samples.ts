import type { ServerResponse } from 'node:http'
import type { HttpContext } from '../../request/context.js'
import { acceptsEncoding } from '../response/negotiate.js'
import { listenTo } from '../response/shared-listener.js'
import { type Sample, watch } from './sample.js'

const MAX_SAMPLE_BYTES = 64 * 1024
const MAX_SAMPLES = 1000
/** Of all samples together: bodies, headers and what they are kept by. */
const MAX_BYTES = 8 * 1024 * 1024
/** Responses watched at once, each of which may hold a body. */
const MAX_WATCHED = 16
/** After this long a response gives way to another one, or clients that read slowly would keep all others from being watched. */
const WATCHED_FOR_MS = 10_000
const SAMPLE_EVERY_MS = 10_000

interface Watching {
  /** By `performance.now()`. */
  readonly since: number
  readonly stop: () => void
}

interface Kept {
  readonly sample: Sample
  readonly bytes: number
  /** The request headers that the answer varies by, and their values. */
  readonly vary: readonly (readonly [name: string, value: string | undefined])[]
}

/**
 * The last answer for each URL that was the same for all clients, kept as a shared cache would: by host and
 * target, for requests that are equal in what `Vary` names. Bounded; what was used last stays.
 */
export class Samples {
  readonly #kept = new Map<string, Kept>()
  /** The responses being watched, the oldest first. */
  readonly #watching = new Set<Watching>()
  #bytes = 0

  /** The sample that answers a request. */
  for(context: HttpContext<never>): Sample | undefined {
    if (context.method !== 'GET' && context.method !== 'HEAD') return undefined
    const key = keyOf(context)
    const kept = this.#kept.get(key)
    if (!kept?.vary.every(([name, value]) => context.header(name) === value)) return undefined
    if (!acceptsEncoding(context.header('accept-encoding'), headerOf(kept.sample, 'content-encoding'))) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept.sample
  }

  /** Whether the answer to a request would be news. */
  wants(context: HttpContext<never>): boolean {
    const kept = this.#kept.get(keyOf(context))
    return kept === undefined || performance.now() - kept.sample.takenAt >= SAMPLE_EVERY_MS
  }

  /** Watches the response to a request, and keeps it in place of the one before; one that is not for all removes that. */
  learnFrom(context: HttpContext<never>): void {
    const now = performance.now()
    if (this.#watching.size >= MAX_WATCHED && !this.#stopOldest(now)) return
    const response = context.response as unknown as ServerResponse
    const stopWatching = watch(response, MAX_SAMPLE_BYTES, (sample) => this.#replace(keyOf(context), sample, context))
    const watching: Watching = {
      since: now,
      stop: () => {
        this.#watching.delete(watching)
        ignoreClose()
        stopWatching()
      },
    }
    const ignoreClose = listenTo(response, 'close', watching.stop)
    this.#watching.add(watching)
  }

  /** Whether the oldest response was watched for long enough to give way. */
  #stopOldest(now: number): boolean {
    const [oldest] = this.#watching
    if (oldest === undefined || now - oldest.since < WATCHED_FOR_MS) return false
    oldest.stop()
    return true
  }

  #replace(key: string, sample: Sample | undefined, context: HttpContext<never>): void {
    this.#drop(key)
    if (!sample) return
    const names = (headerOf(sample, 'vary') ?? '').split(',').flatMap((name) => name.trim().toLowerCase() || [])
    const vary = names.map((name) => [name, context.header(name)] as const)
    const bytes = sample.body.length + lengthOf([['', key], ...sample.headers, ...vary])
    this.#kept.set(key, { sample, bytes, vary })
    this.#bytes += bytes
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_SAMPLES && this.#bytes <= MAX_BYTES) break
      this.#drop(oldest)
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0
    this.#kept.delete(key)
  }
}

/** By what a shared cache keeps answers; and by what a proxy says of host and scheme, which apps behind it go by. */
function keyOf(context: HttpContext<never>): string {
  const named = [':authority', 'host', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port']
  return [...named.map((name) => context.header(name) ?? ''), context.target].join('\n')
}

/** A header of a sample; several of one name are joined. */
function headerOf({ headers }: Sample, wanted: string): string | undefined {
  const values = headers.flatMap(([name, value]) => (name.toLowerCase() === wanted ? value : []))
  return values.length > 0 ? values.join(', ') : undefined
}

function lengthOf(fields: readonly (readonly [string, string | undefined])[]): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0), 0)
}
