import { request } from 'node:https'
import { expect, test } from 'vitest'
import { CERTIFICATE, PRIVATE_KEY } from '../../http/support/certificate.js'
import { endWithTests, fileOf, raw, serving, THREE } from './support.js'

endWithTests()

/** The status of a question over TLS; the code of the error where there is no connection. */
function statusOver(port: number, options: object): Promise<number | string> {
  return new Promise((resolve) => {
    const asking = request(
      {
        ...{ host: '127.0.0.1', port, servername: 'localhost', ca: CERTIFICATE, path: '/v1/decide', method: 'POST' },
        ...{ agent: false, headers: { 'Content-Type': 'application/json' }, ...options },
      },
      (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      },
    )
    asking.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'error'))
    asking.end(JSON.stringify({ path: '/', ip: '192.0.2.7' }))
  })
}

const PEM = ['--tls-cert', fileOf(CERTIFICATE, 'pem'), '--tls-key', fileOf(PRIVATE_KEY, 'pem')]
const JSON_ANYWHERE = ['--document', fileOf(THREE), '--dialect', 'json', '--listen', '0.0.0.0:0']

test('with --tls-client-ca only callers with a certificate are answered, and it may listen anywhere', async () => {
  const decider = await serving([...JSON_ANYWHERE, ...PEM, '--tls-client-ca', fileOf(CERTIFICATE, 'pem')])
  expect(decider.stdout).toContain('https://0.0.0.0:')
  expect(await statusOver(decider.port, { cert: CERTIFICATE, key: PRIVATE_KEY })).toBe(200)
  expect(await statusOver(decider.port, {})).toMatch(/^E/)
  // Without TLS there is no answer at all.
  expect(await raw(decider, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')).not.toContain('200')
})

test('with a certificate and a token it may listen anywhere; with a certificate alone it may not', async () => {
  const decider = await serving([...JSON_ANYWHERE, ...PEM], { SLUICE_TOKEN: 'a-token-of-the-test' })
  expect(await statusOver(decider.port, {})).toBe(401)
  const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer a-token-of-the-test' }
  expect(await statusOver(decider.port, { headers })).toBe(200)
  await expect(serving([...JSON_ANYWHERE, ...PEM])).rejects.toThrow('--listen: expected a loopback address')
})
