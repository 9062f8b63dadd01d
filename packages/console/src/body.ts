import type { IncomingMessage } from 'node:http'
import { ownFieldsOf } from '@sluice/core/internal'
import type { Exchange } from './exchange.js'
import { Problem } from './problem.js'

/** Bytes of a body. */
export const MAX_BODY_BYTES = 65_536
/** The time for a client to send it, in ms. */
const WITHIN_MS = 5000

/**
 * The body of a request as JSON: of the stream, or as a body parser before the console has read it.
 *
 * @throws Problem where it is larger than the console reads, comes too slowly, or is no JSON
 */
export async function readBody({ raw, parsed }: Pick<Exchange, 'raw' | 'parsed'>): Promise<unknown> {
  const { 'content-encoding': encoding = 'identity', 'content-length': length } = ownFieldsOf(raw.headers)
  if (encoding.toLowerCase() !== 'identity') throw new Problem(415, 'expected a body without Content-Encoding')
  if (Number(length) > MAX_BODY_BYTES) throw tooLarge()
  if (!raw.readableDidRead && !raw.readableEnded) return jsonOf(await bytesOf(raw))
  if (typeof parsed === 'string' || parsed instanceof Uint8Array) return jsonOf(Buffer.from(parsed))
  if (parsed === undefined) throw new Problem(400, 'the body was read before it reached the console')
  if (Buffer.byteLength(textOf(parsed)) > MAX_BODY_BYTES) throw tooLarge()
  return parsed
}

/** A parser's bounds may be wider than ours. */
function textOf(parsed: unknown): string {
  try {
    return JSON.stringify(parsed)
  } catch {
    // Such as one that is nested too deeply.
    throw new Problem(400, 'expected a body of JSON in UTF-8')
  }
}

function jsonOf(bytes: Uint8Array): unknown {
  if (bytes.byteLength > MAX_BODY_BYTES) throw tooLarge()
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // The parser's message repeats parts of the body.
    throw new Problem(400, 'expected a body of JSON in UTF-8')
  }
}

/** Not by `for await`, which would close the connection of a body that is too large before the response. */
function bytesOf(raw: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const timer = setTimeout(() => reject(new Problem(408, 'the body took too long')), WITHIN_MS)
    const end = (finish: () => void) => {
      clearTimeout(timer)
      finish()
    }
    raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk)
      else end(() => reject(tooLarge()))
    })
    raw.once('end', () => end(() => resolve(Buffer.concat(chunks))))
    raw.once('error', () => end(() => reject(new Problem(400, 'expected the whole body'))))
    raw.once('close', () => end(() => reject(new Problem(400, 'expected the whole body'))))
  })
}

function tooLarge(): Problem {
  return new Problem(413, `expected a body of at most ${MAX_BODY_BYTES} bytes`)
}
