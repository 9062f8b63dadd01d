import type { GuardFeature, Step } from '../../http/guard/guard-feature.js'
import type { HandleInvalid } from '../../http/guard/invalid.js'
import type { Verdict } from '../../verdict/verdict.js'
import { REQUEST_LISTS } from './list-sources.js'
import { hasLists, ListedSubjects } from './listed-subjects.js'

/** Lists, for requests. */
export const requestLists: GuardFeature = {
  guardOptions: ['allow', 'deny'],
  responders: ({ deny }: { readonly deny?: { readonly respond?: unknown } }) => ({ denied: deny?.respond }),
  guard({ engine: { policy, store }, warnings, handleInvalid }, options) {
    if (!hasLists(options, store)) return undefined
    const listed = new ListedSubjects(policy, store, options, warnings, REQUEST_LISTS)
    return { first: [checkLists(listed, handleInvalid)], early: listed }
  },
}

/** Runs before anything else is read from the request: a client on a list needs no key, and has no cost. */
function checkLists<Request>(listed: ListedSubjects<Request>, handleInvalid: HandleInvalid<Request>): Step<Request> {
  const check: Step<Request> = (request) => {
    const { context } = request
    const { pending } = listed
    if (pending) return pending.then(() => check(request))
    let verdict: Verdict | undefined
    try {
      verdict = listed.match(context.request, context)
    } catch (error) {
      return handleInvalid(error, request.units, context)
    }
    if (verdict) request.decideEarly(verdict)
    return undefined
  }
  return check
}
