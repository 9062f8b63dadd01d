import type { HttpServer } from '@nestjs/common'
import type { SluiceLimiters } from './limiters.js'

type NotFoundHandler = (request: object, response: object, next?: unknown) => unknown

/**
 * Has a limiter decide before Nest responds that a path has no route, where no guard runs. Nest sets that handler when all
 * modules are initialised.
 */
export function countUnknownPaths(adapter: HttpServer, limiters: SluiceLimiters): void {
  const set = adapter.setNotFoundHandler?.bind(adapter)
  if (!set) return
  adapter.setNotFoundHandler = (handler: NotFoundHandler, ...rest: unknown[]) => {
    const limited: NotFoundHandler = async (request, response, next) => {
      await limiters.decideUnknownPath(request, response)
      return handler(request, response, next)
    }
    return (set as (...args: unknown[]) => unknown)(limited, ...rest)
  }
}
