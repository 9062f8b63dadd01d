import type { IncomingMessage } from 'node:http'
import { ownFieldsOf } from '@sluice/core/internal'
import { BadInput } from './bad-input.js'
import { MAX_BODY_BYTES } from './bounds.js'

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
  } = ownFieldsOf(request.headers)
  if (!/^application\/json *(;|$)/i.test(type)) {
    throw new BadInput(415, 'Content-Type: expected application/json', { ends: true })
  }
  if (encoding.toLowerCase() !== 'identity') throw new BadInput(415, 'expected a body without encoding', { ends: true })
  if (Number(length) > MAX_BODY_BYTES) throw tooLarge()
  const bytes = await bytesOf(request)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    // The parser's message repeats parts of the body.
    throw new BadInput(400, 'expected a body of JSON in UTF-8')
  }
}

/** Not by `for await`, which would close the connection of a body that is too large before the response. */
function bytesOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk)
      else reject(tooLarge())
    })
    request.once('end', () => resolve(Buffer.concat(chunks)))
    request.once('error', reject)
    request.once('close', () => reject(new BadInput(400, 'expected the whole body', { ends: true })))
  })
}

function tooLarge(): BadInput {
  return new BadInput(413, `expected a body of at most ${MAX_BODY_BYTES} bytes`, { ends: true })
}
