import { memoryStore } from '@sluice/core'
import { createGuard, type HttpContext } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import { onTestFinished } from 'vitest'

/** A request whose every text a client chose. */
export interface TextRequest {
  readonly method: string
  readonly target: string
  readonly host: string
  readonly user: string | undefined
  readonly ip: string
}

/** A guard by a document in memory, and responses that have ended once they are looked at. */
export async function createGuardOfTexts(document: object): Promise<(request: TextRequest) => Promise<boolean>> {
  const loaded = await policies.from({ object: document, keys: { user: ({ user }: TextRequest) => user } } as never)
  onTestFinished(() => loaded.close())
  const guard = createGuard<TextRequest>({
    policies: loaded,
    store: memoryStore(),
    warnings: { SLUICE_ONE_CLIENT: false, SLUICE_INVALID_REQUEST: false, SLUICE_NO_USER: false },
  } as never)
  return async (request) => {
    const listeners: (() => void)[] = []
    const response = {
      statusCode: 200,
      headersSent: false,
      writableFinished: false,
      destroyed: false,
      on: (_event: string, listener: () => void) => listeners.push(listener),
      removeListener: () => {},
    }
    const { proceed } = await guard({
      request,
      response,
      ip: request.ip,
      method: request.method,
      path: request.target.split('?')[0] ?? '',
      target: request.target,
      route: undefined,
      header: (name: string) => (name === 'host' ? request.host : undefined),
      signedCookie: () => undefined,
      getResponseHeader: () => undefined,
    } as unknown as HttpContext<TextRequest>)
    Object.assign(response, { headersSent: true, writableFinished: true, statusCode: proceed ? 200 : 429 })
    for (const listener of [...listeners]) listener()
    return proceed
  }
}
