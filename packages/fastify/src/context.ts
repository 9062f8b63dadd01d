import { type HttpContext, headerText, pathOf } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Fastify's answers to what the core asks of a request. */
export class FastifyContext implements HttpContext<FastifyRequest> {
  readonly request: FastifyRequest
  readonly #reply: FastifyReply

  constructor(request: FastifyRequest, reply: FastifyReply) {
    this.request = request
    this.#reply = reply
  }

  get response() {
    return this.#reply.raw
  }

  /** By the app's `trustProxy` setting. */
  get ip(): string | undefined {
    return this.request.ip
  }

  get method(): string {
    return this.request.method
  }

  get path(): string {
    return pathOf(this.request.originalUrl)
  }

  /** All paths without a route share one name. */
  get route(): string | undefined {
    return this.request.is404 ? '(no route)' : this.request.routeOptions.url
  }

  header(name: string): string | undefined {
    return headerText(this.request.headers[name])
  }

  getResponseHeader(name: string): string | undefined {
    return headerText(this.#reply.getHeader(name))
  }
}
