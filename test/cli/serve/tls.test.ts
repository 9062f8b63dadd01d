import { request } from 'node:https'
import { expect, test } from 'vitest'
import { CERTIFICATE, PRIVATE_KEY } from '../../http/support/certificate.js'
import { endWithTests, fileOf, raw, serving, THREE } from './support.js'

endWithTests()

/** The status of a decision over TLS, or the code of the error without a connection. */
function statusOver(port: number, options: object): Promise<number | string> {
  return new Promise((resolve) => {
    const sent = request(
      {
        ...{ host: '127.0.0.1', port, servername: 'localhost', ca: CERTIFICATE, path: '/v1/decide', method: 'POST' },
        ...{ agent: false, headers: { 'Content-Type': 'application/json' }, ...options },
      },
      (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      },
    )
    sent.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'error'))
    sent.end(JSON.stringify({ path: '/', ip: '192.0.2.7' }))
  })
}

const PEM = ['--tls-cert', fileOf(CERTIFICATE, 'pem'), '--tls-key', fileOf(PRIVATE_KEY, 'pem')]
const JSON_ANYWHERE = ['--document', fileOf(THREE), '--dialect', 'json', '--listen', '0.0.0.0:0']

test('with --tls-client-ca only callers with a certificate are served, on any address', async () => {
  const decider = await serving([...JSON_ANYWHERE, ...PEM, '--tls-client-ca', fileOf(CERTIFICATE, 'pem')])
  expect(decider.stdout).toContain('https://0.0.0.0:')
  expect(await statusOver(decider.port, { cert: CERTIFICATE, key: PRIVATE_KEY })).toBe(200)
  expect(await statusOver(decider.port, {})).toMatch(/^E/)
  // Without TLS there is no response.
  expect(await raw(decider, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')).not.toContain('200')
})

test('a decider may listen anywhere with a certificate and a token, but not with a certificate alone', async () => {
  const decider = await serving([...JSON_ANYWHERE, ...PEM], { SLUICE_TOKEN: 'a-token-of-the-test' })
  expect(await statusOver(decider.port, {})).toBe(401)
  const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer a-token-of-the-test' }
  expect(await statusOver(decider.port, { headers })).toBe(200)
  await expect(serving([...JSON_ANYWHERE, ...PEM])).rejects.toThrow('--listen: expected a loopback address')
})
