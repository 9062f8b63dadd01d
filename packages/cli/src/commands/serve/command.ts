import cluster from 'node:cluster'
import { PoliciesError } from '@sluice/policies'
import { POSTGRES_OPTIONS } from '../../postgres/client.js'
import type { Command } from '../../program/command.js'
import { REDIS_OPTIONS } from '../../redis/given-target.js'
import { serveByWorkers, serve as serveHere } from './serve.js'
import { serveSettings } from './settings.js'

const { json: _, ...OF_REDIS } = REDIS_OPTIONS

/** Exit codes: it has ended on a signal, or could not start. */
const ENDED = 0
const WRONG = 1

export const serve: Command = {
  name: 'serve',
  summary: 'decide for gateways, and for servers in any language',
  description: `Runs a server that decides on requests by a document of policies, for nginx, Caddy, Traefik, HAProxy, or anything that
speaks JSON. It answers at once, changes nothing but counts, and takes a changed document while it runs.`,
  options: {
    document: {
      type: 'string',
      placeholder: 'FILE',
      text: 'policies, YAML or JSON; redis:NAME or postgres:NAME for what apply saved; needed',
    },
    dialect: {
      type: 'string',
      placeholder: 'NAME',
      text: 'json, nginx, forward-auth (Caddy, Traefik) or haproxy; needed',
    },
    listen: { type: 'string', placeholder: 'ADDRESS:PORT', text: 'where it listens', default: '127.0.0.1:9190' },
    metrics: {
      type: 'string',
      placeholder: 'ADDRESS:PORT',
      text: 'where /metrics for Prometheus is, a listener of its own',
      default: 'none',
    },
    offenders: {
      type: 'boolean',
      text: 'count refusals by identity, for sluice offenders, and /offenders beside /metrics',
    },
    record: {
      type: 'string',
      placeholder: 'FILE',
      text: 'record requests for sluice simulate, with hashes of identities',
      default: 'none',
    },
    'record-secret-file': {
      type: 'string',
      placeholder: 'FILE',
      text: 'a file with the secret of --record, one for all processes',
      default: 'SLUICE_RECORD_SECRET',
    },
    'record-share': {
      type: 'string',
      placeholder: 'SHARE',
      text: 'the share of clients that are recorded, such as 10%',
      default: '100%',
    },
    'trust-proxy': {
      type: 'string',
      placeholder: 'NETWORKS',
      text: 'gateways that are believed: loopback, 10.0.0.0/8; needed but for json',
      repeats: true,
    },
    'token-file': {
      type: 'string',
      placeholder: 'FILE',
      text: 'a secret that callers show; never an argument',
      default: 'SLUICE_TOKEN, else none',
    },
    'allowed-host': {
      type: 'string',
      placeholder: 'NAME',
      text: 'a name that callers without a token may send as host; again for more',
      repeats: true,
    },
    'tls-cert': { type: 'string', placeholder: 'FILE', text: 'certificate of this server, PEM' },
    'tls-key': { type: 'string', placeholder: 'FILE', text: 'its private key, PEM' },
    'tls-client-ca': { type: 'string', placeholder: 'FILE', text: 'callers show a certificate of this authority' },
    key: {
      type: 'string',
      placeholder: 'NAME',
      text: 'json: a key that callers name, such as user; again for more',
      repeats: true,
    },
    tier: {
      type: 'string',
      placeholder: 'NAME',
      text: 'json: a tier that callers name; again for more',
      repeats: true,
    },
    charges: {
      type: 'string',
      placeholder: 'TIME',
      text: 'json: keep charges for TIME, to settle, refund, release or renew them by id',
      default: 'none',
    },
    unavailable: {
      type: 'string',
      placeholder: 'MODE',
      text: 'while Redis is away: local (the limits in this process), allow or deny',
      default: 'local',
    },
    workers: { type: 'string', placeholder: 'N', text: 'processes; more than one needs Redis', default: '1' },
    'max-connections': {
      type: 'string',
      placeholder: 'N',
      text: 'connections at a time, of each process',
      default: '10000',
    },
    grace: {
      type: 'string',
      placeholder: 'TIME',
      text: 'at the end, decides on while /readyz answers 503; 0s for none',
      default: '5s',
    },
    drain: {
      type: 'string',
      placeholder: 'TIME',
      text: 'after that, longest wait for requests under way',
      default: '10s',
    },
    cluster: { type: 'boolean', text: 'Redis is a cluster; else it is asked, at the start' },
    ...OF_REDIS,
    ...POSTGRES_OPTIONS,
  },
  examples: [
    'sluice serve --document policies.yaml --dialect json',
    'REDIS_URL=redis://host:6379 sluice serve --document policies.yaml --dialect nginx --trust-proxy loopback',
    'sluice serve --document redis:default --redis-file url --dialect forward-auth --trust-proxy 10.0.0.5 --workers 4',
    'SLUICE_TOKEN=… sluice serve --document policies.yaml --dialect json --listen 10.0.0.9:9190',
    'sluice serve --document postgres:default --dialect haproxy --trust-proxy loopback --metrics 127.0.0.1:9464 --offenders',
  ],
  notes: `It counts in Redis where REDIS_URL or --redis-file names one, else in its own memory. GET /healthz and /readyz show its
health. It ends on SIGTERM, at once on a second one. Exit code: 0 ended as asked, 1 could not start, 2 wrong usage.`,

  async run(values, environment) {
    const settings = serveSettings(values, environment)
    try {
      if (settings.workers > 1 && cluster.isPrimary) return await serveByWorkers(settings, environment)
      await serveHere(settings, environment)
      return ENDED
    } catch (error) {
      if (!isStartFailure(error)) throw error
      environment.stderr.write(`${error.message}\n`)
      return WRONG
    } finally {
      // Its channel would keep a worker alive.
      if (cluster.isWorker) process.disconnect()
    }
  },
}

/** A failure of the document or of the address: the command line is all right. */
function isStartFailure(error: unknown): error is Error {
  return error instanceof PoliciesError || (error as NodeJS.ErrnoException)?.syscall === 'listen'
}
