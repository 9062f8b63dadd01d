import { finished, type Readable } from 'node:stream'
import { type CallHandler, type ExecutionContext, type NestInterceptor, StreamableFile } from '@nestjs/common'
import { holdPermitsUntil } from '@sluice/core/http'
import { tap } from 'rxjs'
import { isReply } from './http.js'

/**
 * Shows that handlers are done to which no response does, as their client has left: Nest unsubscribes from the Observable of a
 * handler, or destroys the stream of a `StreamableFile`, and sends nothing. Their permits would be held for a whole `ttl`.
 */
export class HandlerEnds implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): ReturnType<CallHandler['handle']> {
    const handled = next.handle()
    if (context.getType() !== 'http') return handled
    const reply = context.getArgByIndex(1)
    const response = isReply(reply) ? reply.raw : reply
    return handled.pipe(
      tap({
        next: (result) => {
          if (result instanceof StreamableFile) holdPermitsUntil(response, endOf(result.getStream()))
        },
        // Not when it completes: a handler that got the response may use it later.
        unsubscribe: () => holdPermitsUntil(response, Promise.resolve()),
      }),
    )
  }
}

function endOf(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    finished(stream, { writable: false }, () => resolve())
  })
}
