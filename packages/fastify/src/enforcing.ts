import type { Verdict } from '@sluice/core'
import type { Enforcing, Outcome } from '@sluice/core/http'
import type { FastifyReply } from 'fastify'
import type { FastifyContext } from './context.js'
import { withoutDetails } from './failure.js'
import { runHandler } from './handler.js'

/** Puts outcomes on replies of Fastify. `property`: the name of the verdict on the request. */
export function enforcingFastify(property: string): Enforcing<FastifyContext> {
  return {
    write(outcome, { request, reply }) {
      if (outcome.verdict) (request as object as Record<string, unknown>)[property] = outcome.verdict
      send(outcome, reply)
    },
    handle(call, { request, reply }, next, { verdict }) {
      runHandler(call, request, reply, verdict as Verdict, next)
    },
    failure: withoutDetails,
  }
}

function send(outcome: Outcome, reply: FastifyReply): void {
  const { proceed, headers, reply: answer } = outcome
  for (const [name, value] of headers) reply.header(keyOf(name), value)
  if (answer) reply.code(answer.status).send(answer.body)
  // The client has gone; the handler must not run either.
  else if (!proceed && !outcome.error && !outcome.handler) reply.hijack()
}

/** Names of fields in lower case, as Fastify keeps and sends them. V8 would have to look each new text up among all names of properties. */
const keys = new Map<string, string>()

/** Responders may make names up. */
const MAX_KEYS = 100

function keyOf(name: string): string {
  const known = keys.get(name)
  if (known !== undefined) return known
  const key = name.toLowerCase()
  if (keys.size < MAX_KEYS) keys.set(name, key)
  return key
}
