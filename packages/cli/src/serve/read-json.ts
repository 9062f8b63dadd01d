import type { IncomingMessage } from 'node:http'
import { BadInput } from './bad-input.js'
import { MOST_BODY_BYTES } from './bounds.js'

/**
 * The body of a request as JSON.
 *
 * @throws BadInput where it is larger than a decider reads, or no JSON
 */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const {
    'content-type': type = '',
    'content-encoding': encoding = 'identity',
    'content-length': length,
  } = request.headers
  if (!/^application\/json *(;|$)/i.test(type)) {
    throw new BadInput(415, 'Content-Type: expected application/json', { ends: true })
  }
  if (encoding.toLowerCase() !== 'identity') throw new BadInput(415, 'expected a body without encoding', { ends: true })
  if (Number(length) > MOST_BODY_BYTES) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MOST_BODY_BYTES) throw tooLarge()
    chunks.push(chunk)
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch {
    // What the parser says repeats parts of the body.
    throw new BadInput(400, 'expected a body of JSON in UTF-8')
  }
}

function tooLarge(): BadInput {
  return new BadInput(413, `expected a body of at most ${MOST_BODY_BYTES} bytes`, { ends: true })
}
