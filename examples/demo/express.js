// @ts-check
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { rateLimit } from '@sluice/express'
import express from 'express'
import { register } from 'prom-client'
import { help } from './help.js'
import { answer, BUSY_MS, download, limitsFor, loginAnswer, openAnswer, unitsOf } from './limits.js'

/**
 * @param {import('@sluice/core').Store} store
 * @param {import('@sluice/policies').Policies} policies
 * @param {number} port
 * @param {readonly number[]} ports
 * @param {import('./console.js').DemoConsole} console
 */
export async function expressServer(store, policies, port, ports, console) {
  const { limited, several, costly, together, slow, queued, slowed, busy, reported, password, login } = limitsFor(
    'express',
    store,
  )
  const app = express()
  // The traffic that the console sends comes from this machine, and says who it stands for.
  app.set('trust proxy', 'loopback')
  let logins = 0

  app.get('/', (_req, res) => void res.type('text/plain').send(help('Express', port, ports)))
  app.use('/sluice', (req, res) => console.serve(req, res, req.url))
  app.get('/open', (_req, res) => void res.json(openAnswer('express')))
  // For Prometheus. In production, use a port that only Prometheus reaches: the names of policies are not for clients.
  app.get('/metrics', async (_req, res) => void res.type(register.contentType).send(await register.metrics()))
  app.get('/limited', rateLimit(limited), (req, res) => void res.json(answer('express', req.rateLimit)))
  app.get('/several', rateLimit(several), (req, res) => void res.json(answer('express', req.rateLimit)))
  app.get('/costly', rateLimit({ ...costly, cost: (req) => unitsOf(req.query.units) }), (req, res) => {
    res.json(answer('express', req.rateLimit))
  })
  app.get('/together', rateLimit(together), (req, res) => void res.json(answer('express', req.rateLimit)))

  app.get('/slow', rateLimit(slow), (req, res) => void res.json(answer('express', req.rateLimit)))
  app.get('/queue', rateLimit(queued), (req, res) => void res.json(answer('express', req.rateLimit)))
  app.get('/download', rateLimit(slowed), (_req, res) => void res.type('text/plain').send(download))
  app.get('/busy', rateLimit(busy), async (req, res) => {
    await sleep(BUSY_MS)
    res.json(answer('express', req.rateLimit))
  })
  app.get('/reported', rateLimit(reported), (req, res) => void res.json(answer('express', req.rateLimit)))
  app.use('/policies', rateLimit({ name: 'express', policies, store }), (req, res) => {
    res.json(answer('express', req.rateLimit))
  })
  app.post('/password', rateLimit(password), (req, res) => void res.json(answer('express', req.rateLimit)))
  app.get('/login', (_req, res) => void res.json({ logins }))
  app.post('/login', rateLimit(login), (_req, res) => {
    logins++
    res.set('Cache-Control', 'no-store').json(loginAnswer) // as a shadow, which no cache may store
  })
  return createServer(app)
}
