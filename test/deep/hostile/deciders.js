// Deciders of every dialect in a separate process, on the built packages, and a server that reads as much and decides nothing.
// Reports the CPU time of the process.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'

const READS = ['path', 'query', 'cookie', 'authorization', 'host', 'x-key', 'x-forwarded-for']
const LIMITS = '[{ algorithm: fixedWindow, limit: 1, window: 1h }]'
const DOCUMENT = `version: 1
policies:
  paths: { match: { paths: [/login, '/a/:b/c', '/*/*/*/d', '/x/**'] }, limits: ${LIMITS} }
  heads: { match: { hosts: ['*.example.com'], headers: { x-key: a } }, limits: ${LIMITS} }
  cookies: { key: 'cookie:sid', limits: ${LIMITS} }
  credentials: { key: ['header:authorization', path], limits: ${LIMITS} }
`
const folder = mkdtempSync(join(tmpdir(), 'sluice-hostile-'))
const file = join(folder, 'policies.yaml')
writeFileSync(file, DOCUMENT)

/** @param {string} dialect @param {string[]} more @returns {Promise<{ name: string, reads: string[], port: number }>} */
function decider(dialect, ...more) {
  const args = ['serve', '--document', file, '--dialect', dialect, '--listen', '127.0.0.1:0', ...more]
  return new Promise((resolve, reject) => {
    const write = (/** @type {string} */ text) => {
      const port = /on https?:\/\/\S+:(\d+),/.exec(text)?.[1]
      if (port) resolve({ name: `dialect: ${dialect}`, reads: READS, port: Number(port) })
    }
    run(args, { env: {}, stdout: { write }, stderr: { write() {} }, version: '0' }).then(
      (code) => reject(new Error(`${dialect}: ended with ${code}`)),
      reject,
    )
  })
}

/** Reads the body of a request and the JSON in it, and decides nothing. */
const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk) => {
    text += chunk
  })
  request.on('end', () => {
    if (text !== '') JSON.parse(text)
    response.end('{}')
  })
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
const bare = /** @type {import('node:net').AddressInfo} */ (server.address()).port
const setups = await Promise.all([
  decider('json', '--key', 'user'),
  ...['nginx', 'forward-auth', 'haproxy'].map((dialect) => decider(dialect, '--trust-proxy', 'loopback')),
])
process.on('message', () => process.send?.(process.cpuUsage()))
process.once('disconnect', () => {
  rmSync(folder, { recursive: true })
  process.exit()
})
process.send?.({ bare, setups })
