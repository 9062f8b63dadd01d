import type { HttpContext } from '@sluice/core/http'
import {
  type DecisionRecorder,
  emitWarning,
  invalidPolicy,
  knownOptions,
  noteObserver,
  recordBy,
  wrongPolicy,
} from '@sluice/core/internal'
import { START, VERSION } from './form.js'
import { Hashes } from './hashes.js'
import { RecordFile } from './record-file.js'
import { Recorder } from './recorder.js'

export interface RecordingOptions {
  /**
   * The path of the file, for this process alone.
   *
   * Earlier files are kept beside it, as `FILE.1` to `FILE.7`.
   */
  readonly file: string
  /**
   * A text of 16 characters or more, the same in all processes.
   *
   * Records have HMACs of addresses and other identities by this secret, so that a client has the same in all files.
   */
  readonly secret: string
  /**
   * The share of clients that are recorded, above 0 and up to 1.
   *
   * Clients are chosen by a hash of their network, a /24 of IPv4 or a /48 of IPv6: all requests of a client are recorded, or none.
   * @default 1
   */
  readonly share?: number
  /** Bytes of all files together, 1 MiB or more. @default 1 GiB */
  readonly maxBytes?: number
}

/** A recording that has begun. */
export interface Recording {
  /** The number of records that were written. */
  readonly written: number
  /** The number of records that could not be written in time. */
  readonly dropped: number
  /** Writes what waits, and ends. Resolves when the file is closed. */
  stop(): Promise<void>
  /**
   * Ends a request whose response another process sends, as gateways do. Any other ends with its response.
   *
   * @param status of the response; undefined if it is not known
   */
  ended(context: HttpContext<unknown>, status: number | undefined): void
}

const SHORTEST_SECRET = 16
const MIN_BYTES = 1024 * 1024
const DEFAULT_BYTES = 1024 ** 3
const WARN_EVERY_MS = 60_000

let current: DecisionRecorder | undefined

/**
 * Records each request that limiters of this process decide on, for `sluice simulate`: when, for what, by whom, and what was
 * decided. Identities are HMACs. A record is written when the response has ended. A disk that is slow or full drops records, and
 * no request waits for one. See docs/recordings.md.
 *
 * @example const recording = startRecording({ file: '/var/log/app/requests.log', secret: process.env.RECORDING_SECRET })
 * @throws SluiceError `INVALID_POLICY` for wrong options, or where the process records already; Error where the file cannot be
 * written
 */
export function startRecording(options: RecordingOptions): Recording {
  const where = 'startRecording'
  knownOptions(where, options, ['file', 'secret', 'share', 'maxBytes'])
  const { file, secret, share = 1, maxBytes = DEFAULT_BYTES } = options
  if (typeof file !== 'string' || file === '') invalidPolicy(where, 'file', 'the path of a file', file)
  if (typeof secret !== 'string' || secret.length < SHORTEST_SECRET) {
    // Not shown: it is a secret.
    wrongPolicy(`${where}: secret: expected a string of ${SHORTEST_SECRET} characters or more`)
  }
  if (!(typeof share === 'number' && share > 0 && share <= 1)) {
    invalidPolicy(where, 'share', 'a number above 0 and up to 1', share)
  }
  if (!Number.isSafeInteger(maxBytes) || maxBytes < MIN_BYTES) {
    invalidPolicy(where, 'maxBytes', `a whole number from ${MIN_BYTES}`, maxBytes)
  }
  if (current) wrongPolicy(`${where}: expected one recording at a time in a process`)
  noteObserver(where)

  const hashes = new Hashes(secret, share)
  let warnedAt = Number.NEGATIVE_INFINITY
  const recordFile = new RecordFile({
    file,
    head: START + JSON.stringify({ version: VERSION, secret: hashes.fingerprint, share }),
    maxBytes,
    onFailure(error) {
      const now = performance.now()
      if (now - warnedAt < WARN_EVERY_MS) return
      warnedAt = now
      emitWarning('SLUICE_RECORDING_FAILED', `${where}: records are dropped: ${error.message}`)
    },
  })
  const recorder = new Recorder(hashes, (line) => recordFile.add(line))
  current = recorder
  recordBy(recorder)
  let stopped: Promise<void> | undefined
  return {
    get written() {
      return recordFile.written
    },
    get dropped() {
      return recordFile.dropped
    },
    ended: (context, status) => recorder.ended(context, status),
    stop() {
      if (stopped) return stopped
      recordBy(undefined)
      current = undefined
      recorder.endAll()
      stopped = recordFile.close()
      return stopped
    },
  }
}
