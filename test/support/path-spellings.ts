import fc from 'fast-check'

/** Patterns of policies, and of routes. */
export const PATHS = ['/api/search', '/api/in/:id', '/files/**', '/wild/**', '/users/:id', '/users/:id/x']

const PIECES =
  '/ // /./ /../ %2f %2F \\ %5c ; ;a=b ; ;7 %3B /; /.; /..; ;/ ? ?a=b # %23 %3b %3f %00 %20 . .. %2e %2e%2e .%2E'
    .concat(
      ' api API %61pi %41pi in search SEARCH se%61rch sear%63h files f%69les wild users x 1 %31 %c3%a9 \xc3\xa9 %ff % %u0061 %25',
    )
    .concat(
      " http://h http://h; http://h? HTTP://h ftp://h //a@h //h * %c5%bf %e2%84%aa \xa0 %a0 ' %27 @ %40 { %7b + %2b /x/.. /x;/../ x\\..\\",
    )
    // Express escapes these, in targets that it parses as URLs.
    .concat(' | ^ ` " < > } |/1 ^^/ http://h/users/1|/x')
    .split(' ')

export const WHOLE =
  '/api/search /files/a /users/1/x /users/1 http://h/api/search /API/search/ //api//search /api/%73earch'
    .concat(
      ' /files /files/ /Files/../x /users/a%2fb/x /users//x /users/ /wild/a/b /wild/a%2fb /users/a;b/x /users/a%3bb /api//a@h/search# /api\\a@h/search# /api/in/1',
    )
    .concat(
      ' http://h/users/1\\x /x/..;/api/search /;x/api/search /.;/api/search /api;x/search /users;a/1/x http://h/users/1|/2/x /users/1^^/2/x#',
    )
    .split(' ')

const edit = fc.record({ at: fc.nat(30), cut: fc.nat(2), piece: fc.constantFrom(...PIECES) })

/** Targets of requests near those paths, in spellings that some router may accept. */
export const spelledTargets = fc
  .record({ whole: fc.constantFrom(...WHOLE), edits: fc.array(edit, { minLength: 1, maxLength: 4 }) })
  .map(({ whole, edits }) =>
    edits.reduce((target, { at, cut, piece }) => target.slice(0, at) + piece + target.slice(at + cut), whole),
  )

/** Checks that a router delivers one route with one set of parameters under one key only. */
export class KeysOfRoutes {
  readonly #keys = new Map<string, { readonly key: string; readonly target: string }>()

  /** Undefined if there is no problem. `key`: undefined for an invalid request. */
  problem(route: string, key: string | undefined, target: string): string | undefined {
    if (key === undefined) return undefined
    const known = this.#keys.get(route)
    if (!known) this.#keys.set(route, { key, target })
    else if (known.key !== key) return `${route}: ${known.target} is ${known.key}, and ${target} is ${key}`
    return undefined
  }
}
