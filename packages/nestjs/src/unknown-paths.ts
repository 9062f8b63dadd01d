import type { HttpServer } from '@nestjs/common'
import type { SluiceLimiters } from './limiters.js'

type NotFoundHandler = (request: object, response: object, next?: unknown) => unknown

/**
 * Has a limiter decide before Nest responds that a path has no route, where no guard runs. Nest sets that handler when all
 * modules are initialised.
 */
export function countUnknownPaths(adapter: HttpServer, limiters: SluiceLimiters): void {
  const set = adapter.setNotFoundHandler?.bind(adapter) as ((...args: unknown[]) => unknown) | undefined
  if (!set) return
  const limited =
    (handler: NotFoundHandler): NotFoundHandler =>
    async (request, response, next) => {
      await limiters.decideUnknownPath(request, response)
      return handler(request, response, next)
    }
  adapter.setNotFoundHandler = (handler: NotFoundHandler, prefix?: string, ...rest: unknown[]) => {
    const result = set(limited(handler), prefix, ...rest)
    // On Express, Nest leaves paths outside of its prefix to Express.
    if (prefix && adapter.getType() === 'express')
      adapter.use(limited((_request, _response, next) => (next as () => void)()))
    return result
  }
}
