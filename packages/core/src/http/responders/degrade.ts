import { knowFactories } from '../../util/factories.js'
import { knownOptions } from '../../util/validate.js'
import { isBarred, marked } from '../../verdict/verdict.js'
import { fallback } from './fallback.js'
import { type Responder, withTraits } from './responder.js'

export interface DegradeOptions<Request> {
  /** Responds to blocked, banned and denied requests, which never pass. @default reject() */
  readonly otherwise?: Responder<Request>
}

/**
 * Passes a request over the limit to its handler, uncharged. Its verdict is `degraded`, so that the handler can do less. The
 * response has `Cache-Control: no-store`, which the handler may replace, so that caches do not serve it to others.
 *
 * @example app.get('/search', rateLimit({ limit: 10, window: '1s', respond: degrade() }), (req, res) => res.json(req.rateLimit.degraded ? cached : search()))
 * @throws SluiceError `INVALID_POLICY`
 */
export function degrade<Request>(options: DegradeOptions<Request> = {}): Responder<Request> {
  knownOptions('degrade', options, ['otherwise'])
  const otherwise = fallback<Request>('degrade', 'otherwise', options.otherwise)
  return withTraits<Request>(
    function degrade(refused) {
      if (isBarred(refused.verdict)) return otherwise(refused)
      return { verdict: marked(refused.verdict, { degraded: true }), ending: 'proceed' }
    },
    otherwise,
    // The handler has begun, and does not know of the limit.
    { degrades: true, whenExhausted: () => true },
  )
}

knowFactories({ 'degrade()': degrade })
