import { Problem } from '../problem.js'

export const CONFIRMED = {
  type: 'boolean',
  description:
    'Needed where the identity is the address that the request comes from, contains it, or is composed with it.',
} as const

/** Whoever refuses the network that they come from may refuse themselves. @throws Problem */
export function askFirst(isOwn: boolean, confirmed: boolean | undefined): void {
  if (!isOwn || confirmed) return
  throw new Problem(409, 'your own request comes from there: send confirmed: true to refuse it all the same', {
    confirm: 'own-address',
  })
}
